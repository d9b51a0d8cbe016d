"""What was spent: by month, person and model, and by a run. Unknown prices are counted as calls, never as nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from apps.ledger.limits import ZERO, counting, month_of, of_person
from apps.ledger.models import Call, LanguageModel, Limits, Outcome, PersonLimit
from apps.people.models import Person


@dataclass(frozen=True)
class Spent:
    """Sums over calls. `usd` is what is known; `unpriced` calls took tokens at a price nobody knows, `lost` ones died with
    their worker, and for `estimated` ones the tokens were estimated. `reserved` is set aside for calls on their way."""

    calls: int = 0
    usd: Decimal = ZERO
    reserved: Decimal = ZERO
    tokens_in: int = 0
    tokens_out: int = 0
    unpriced: int = 0
    lost: int = 0
    estimated: int = 0


@dataclass(frozen=True)
class PersonSpent:
    """A person's month beside their limit; `own_limit` is set where it is theirs alone."""

    person: Person
    spent: Spent
    limit: Decimal | None
    own_limit: Decimal | None

    @property
    def part(self) -> float | None:
        """The share of the limit that is spent or set aside."""
        if not self.limit:
            return None if self.limit is None else 1.0
        return min(1.0, float((self.spent.usd + self.spent.reserved) / self.limit))


@dataclass(frozen=True)
class ModelSpent:
    """A model's month."""

    model: LanguageModel
    spent: Spent


_SETTLED = ~Q(outcome__in=[Outcome.OPEN, Outcome.LOST])
# Under names that no column has.
_SUMS = {
    "sum_calls": Count("pk"),
    "sum_usd": Coalesce(Sum("cost_usd"), ZERO),
    "sum_reserved": Coalesce(Sum("counted_usd", filter=Q(outcome=Outcome.OPEN)), ZERO),
    "sum_tokens_in": Coalesce(Sum("tokens_in"), 0),
    "sum_tokens_out": Coalesce(Sum("tokens_out"), 0),
    "sum_unpriced": Count("pk", filter=_SETTLED & Q(cost_usd__isnull=True)),
    "sum_lost": Count("pk", filter=Q(outcome=Outcome.LOST)),
    "sum_estimated": Count("pk", filter=Q(estimated=True)),
}


def of(calls: QuerySet[Call]) -> Spent:
    """The sums over those calls."""
    return _spent(calls.aggregate(**_SUMS))


def of_run(run: int) -> Spent:
    """All that a run spent: what cost per accepted gain is reckoned from."""
    return of(Call.objects.filter(run=run))


def of_month(now: datetime) -> Spent:
    """All that was spent in the month of that moment."""
    return of(counting(now).filter(month=month_of(now)))


def by_person(limits: Limits, people: Sequence[Person], now: datetime) -> list[PersonSpent]:
    """The month of each of those people."""
    rows = counting(now).filter(month=month_of(now), person__isnull=False).values("person")
    sums = {row["person"]: _spent(row) for row in rows.annotate(**_SUMS)}
    own = dict(PersonLimit.objects.values_list("person_id", "month_usd"))
    return [
        PersonSpent(one, sums.get(one.pk, Spent()), own.get(one.pk, limits.person_month_usd), own.get(one.pk))
        for one in people
    ]


def of_one(limits: Limits, person: Person, now: datetime) -> PersonSpent:
    """The month of one person."""
    calls = counting(now).filter(month=month_of(now), person=person)
    return PersonSpent(person, of(calls), of_person(limits, person.pk), None)


def by_model(now: datetime) -> list[ModelSpent]:
    """The month of each model that was called, the dearest first."""
    rows = (
        counting(now)
        .filter(month=month_of(now))
        .values("model")
        .annotate(**_SUMS)
        .order_by(F("sum_usd").desc(), "model")
    )
    models = LanguageModel.objects.in_bulk([row["model"] for row in rows])
    return [ModelSpent(models[row["model"]], _spent(row)) for row in rows]


def _spent(row: dict[str, Any]) -> Spent:
    return Spent(**{name.removeprefix("sum_"): row[name] for name in _SUMS})
