"""Whose limit it is hears when it is nearly spent and when it is spent, once each."""

from __future__ import annotations

from decimal import Decimal

import pytest

from apps.agents.gateway.purse import Call as Made
from apps.agents.gateway.purse import Largest, Question
from apps.agents.words import Usage
from apps.ledger import accounts, limits
from apps.ledger.accounts import Place
from apps.ledger.limits import Account
from apps.ledger.models import LanguageModel
from apps.notices.models import Kind, Notice
from apps.people.models import Person


@pytest.fixture
def model(db: None) -> LanguageModel:
    """A model with a price."""
    return LanguageModel.objects.create(name="m", model_id="openai/m", call_seconds=60)


def spend(model: LanguageModel, person: Person, usd: float) -> None:
    number = accounts.reserve(model, Account(1, person.pk, str(person)), Place("coder"), Largest(usd))
    accounts.settle(number, Made("openai/m", Question(()), "", "x", True, Usage(1.0, "openai/m", 10, 10, usd), None))


def told() -> list[tuple[str, str, str]]:
    notices = Notice.objects.filter(kind=Kind.SPENDING).order_by("pk").select_related("person")
    return [(one.person.username, one.title.partition(" for ")[0], one.text) for one in notices]


def test_a_limit_is_told_of_at_four_fifths_and_at_its_end(model: LanguageModel, person: Person, admin: Person) -> None:
    row = limits.current()
    row.person_month_usd, row.team_month_usd = Decimal(1), Decimal(10)
    row.save()
    spend(model, person, 0.5)
    assert told() == []
    spend(model, person, 0.3)
    spend(model, person, 0.05)
    assert told() == [("ada", "Your spending limit", "$0.8000 of $1.00.")]
    spend(model, person, 0.15)
    assert told()[1:] == [("ada", "Your spending limit", "$1.00 of $1.00.")]
    row.team_month_usd = Decimal("1.2")
    row.person_month_usd = None
    row.save()
    spend(model, person, 0.01)
    assert told()[2:] == [("root", "The team's spending limit", "$1.01 of $1.20.")]


def test_without_limits_nobody_is_told(model: LanguageModel, person: Person) -> None:
    spend(model, person, 5000.0)
    assert told() == []
