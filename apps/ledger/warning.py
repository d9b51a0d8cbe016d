"""Telling people that a month's limit comes near or is reached: once for each limit, month and mark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from django.urls import reverse

from apps.ledger import limits
from apps.ledger.models import Call, Outcome
from apps.notices.models import Kind
from apps.notices.telling import tell
from apps.people.models import Person
from apps.people.permissions import Action, may

MARKS = (100, 80)  # percent of a limit; the highest one that is reached is told


@dataclass(frozen=True)
class _Month:
    """One limit of a month: what was spent of it, and who should know."""

    name: str
    key: str
    limit: Decimal
    spent: Decimal
    people: tuple[Person, ...]


def tell_spending(number: int) -> None:
    """Tell those concerned, if what this call came to took a limit of its month past a mark."""
    call = Call.objects.select_related("person").filter(pk=number).first()
    if call is None or not call.cost_usd:
        return
    for month in _months(call):
        share = month.spent * 100 / month.limit if month.limit else Decimal(100)
        mark = next((mark for mark in MARKS if share >= mark), None)
        if mark is None:
            continue
        what = "is reached: no further call is made against it" if mark == 100 else f"is {mark} % spent"
        tell(
            Kind.SPENDING,
            month.people,
            f"{month.name} for {call.month:%B %Y} {what}",
            text=f"{limits.dollars(month.spent)} of {limits.dollars(month.limit)}.",
            link=reverse("settings-limits"),
            key=f"spending:{month.key}:{call.month:%Y-%m}:{mark}:{month.limit}",
        )


def _months(call: Call) -> Iterator[_Month]:
    current, month = limits.current(), Call.objects.filter(month=call.month).exclude(outcome=Outcome.OPEN)
    if call.person is not None and (own := limits.of_person(current, call.person.pk)) is not None:
        spent = limits.counted(month.filter(person=call.person))
        yield _Month("Your spending limit", f"person{call.person.pk}", own, spent, (call.person,))
    if current.team_month_usd is not None:
        admins = tuple(one for one in Person.objects.filter(is_active=True) if may(one, Action.MANAGE_LIMITS))
        spent = limits.counted(month)
        yield _Month("The team's spending limit", "team", current.team_month_usd, spent, admins)
