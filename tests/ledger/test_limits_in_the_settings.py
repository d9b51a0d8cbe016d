"""Settings › Limits and spending: admins set limits, everyone sees their own month, unknown prices are said."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.ledger import limits
from apps.ledger.models import Call, LanguageModel, Limits, Outcome, PersonLimit
from apps.people.models import AuditEntry, Person

pytestmark = pytest.mark.django_db


def spend(model: LanguageModel, person: Person | None, cost: str | None, **more: Any) -> Call:
    now = timezone.now()
    given: dict[str, Any] = {
        "run": 7, "agent": "coder", "step": "1.0.write.0", "outcome": Outcome.ANSWERED, "tokens_in": 1000, "tokens_out": 50,
        "cost_usd": cost, "counted_usd": cost or 0, "month": limits.month_of(now), "expires_at": now, "ended_at": now,
    }  # fmt: skip
    return Call.objects.create(model=model, person=person, **given | more)


@pytest.fixture
def root(client: Client, admin: Person) -> Client:
    client.force_login(admin)
    return client


def test_an_admin_sets_limits_and_that_is_in_the_audit_log(root: Client, person: Person) -> None:
    assert root.post("/settings/limits/", {"team_month_usd": "100", "run_usd": "2.50"}).status_code == 302
    assert root.post(f"/settings/limits/{person.pk}/", {"month_usd": "7"}).status_code == 302
    found = Limits.objects.get()
    assert (found.team_month_usd, found.person_month_usd, found.run_usd) == (100, None, Decimal("2.50"))
    assert PersonLimit.objects.get().month_usd == 7
    kinds = set(AuditEntry.objects.values_list("kind", flat=True))
    assert {"limits.changed", "limits.person_changed"} <= kinds
    root.post(f"/settings/limits/{person.pk}/", {"month_usd": ""})
    assert not PersonLimit.objects.exists()


def test_a_limit_below_nothing_is_refused(root: Client) -> None:
    answer = root.post("/settings/limits/", {"run_usd": "-1"})
    assert answer.status_code == 422
    assert "not less than 0" in answer.content.decode()


def test_the_month_is_shown_by_person_and_model(root: Client, person: Person, model: LanguageModel) -> None:
    PersonLimit.objects.create(person=person, month_usd=5)
    spend(model, person, "1.25")
    spend(model, person, None)
    spend(model, None, "0.5", estimated=True)
    page = root.get("/settings/limits/").content.decode()
    assert "over $1.25" in page
    assert "1 at an unknown price" in page
    assert "over ≈ $1.75" in page
    assert "25 %" in page


def test_an_engineer_sees_their_own_month_alone(signed_in: Client, admin: Person, model: LanguageModel) -> None:
    spend(model, admin, "3.33")
    page = signed_in.get("/settings/limits/").content.decode()
    assert "Ada Moss" in page
    assert ">root<" not in page
    assert "Own limit" not in page


def test_every_call_of_a_run_is_listed(signed_in: Client, person: Person, model: LanguageModel) -> None:
    spend(model, person, "0.01", tokens_cached=400)
    spend(model, person, None, outcome=Outcome.FAILED, failure="Key: not accepted.", number=2, retries=1)
    spend(model, person, None, outcome=Outcome.OPEN, reserved_usd="0.3", counted_usd="0.3")
    page = signed_in.get("/runs/7/calls/").content.decode()
    assert "after 1 failed try" in page
    assert "Key: not accepted." in page
    assert "up to $0.3000" in page
    assert "unknown" in page
    listed = signed_in.get("/api/v1/calls/?run=7").json()
    assert [one["outcome"] for one in listed["results"]] == ["answered", "failed", "open"]
    assert listed["results"][0]["tokens_cached"] == 400
    assert "has called no model" in signed_in.get("/runs/8/calls/").content.decode()
