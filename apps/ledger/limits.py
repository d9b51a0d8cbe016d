"""What may be spent and what is left of it: by run, by person and UTC month, by team and UTC month."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Q, QuerySet, Sum

from apps.ledger.models import Call, Limits, Outcome, PersonLimit

ZERO = Decimal(0)


@dataclass(frozen=True)
class Account:
    """Whose money a call spends: a run's, and its owner's. A run's own limits are its row's, as they stand now.

    `person_name` is for messages; without it they speak to the person. `run` is None for a trial of a model.
    """

    run: int | None
    person: int | None
    person_name: str = ""
    run_limit_usd: Decimal | None = None
    run_limit_tokens: int | None = None


@dataclass(frozen=True)
class Room:
    """One limit of money with what is spent or set aside of it. `whose` begins a sentence."""

    whose: str
    limit: Decimal
    counted: Decimal
    remedy: str

    @property
    def left(self) -> Decimal:
        """What is left, never less than nothing."""
        return max(self.limit - self.counted, ZERO)


def month_of(now: datetime) -> date:
    """The first day of the UTC month of a moment."""
    return now.astimezone(UTC).date().replace(day=1)


def current() -> Limits:
    """The limits as they are; the row is made where there is none yet."""
    return Limits.objects.get_or_create(pk=1)[0]


def locked() -> Limits:
    """The limits, their row locked until the open transaction ends: reservations are made one after the other.

    SQLite locks the whole database with the transaction (`transaction_mode` IMMEDIATE).
    """
    current()
    return Limits.objects.select_for_update().get(pk=1)


def counting(now: datetime) -> QuerySet[Call]:
    """The calls that take something from a limit: all but those nobody can be making any more."""
    return Call.objects.exclude(Q(outcome=Outcome.OPEN) & Q(expires_at__lt=now))


def counted(calls: QuerySet[Call]) -> Decimal:
    """What those calls take from a limit."""
    total: Decimal | None = calls.aggregate(total=Sum("counted_usd"))["total"]
    return total or ZERO


def rooms(limits: Limits, account: Account, now: datetime) -> Iterator[Room]:
    """Every limit of money that holds for a call of that account now, the narrowest first."""
    calls = counting(now)
    month = calls.filter(month=month_of(now))
    named = f"{now.astimezone(UTC):%B %Y} (UTC)"
    if account.run is not None:
        run_limit, whose, remedy = _of_run(limits, account)
        if run_limit is not None:
            yield Room(whose, run_limit, counted(calls.filter(run=account.run)), remedy)
    if account.person is not None and (own := of_person(limits, account.person)) is not None:
        whose = f"{account.person_name}'s limit" if account.person_name else "Your limit"
        yield Room(f"{whose} for {named}", own, counted(month.filter(person=account.person)), _ADMIN)
    if limits.team_month_usd is not None:
        yield Room(f"The team's limit for {named}", limits.team_month_usd, counted(month), _ADMIN)


def of_person(limits: Limits, person: int) -> Decimal | None:
    """A person's limit a month: their own, else everyone's, else none."""
    own = PersonLimit.objects.filter(person_id=person).values_list("month_usd", flat=True).first()
    return own if own is not None else limits.person_month_usd


def tightest(account: Account, now: datetime) -> Room | None:
    """The limit that leaves least, or None where there is none at all. For pages; a reservation asks under the lock."""
    return min(rooms(current(), account, now), key=lambda room: room.left, default=None)


_ADMIN = "An admin can raise it under Settings › Limits and spending."
_RUN = "Raise the run's limit, or let it end."


def _of_run(limits: Limits, account: Account) -> tuple[Decimal | None, str, str]:
    own, team = account.run_limit_usd, limits.run_usd
    if own is None or (team is not None and team < own):
        return team, "The team's limit for one run", _ADMIN
    return own, "The run's limit", _RUN


def dollars(amount: Any) -> str:
    """Money in a message: `$0.0312`, `$1.20`."""
    value = Decimal(str(amount))
    return f"${value:.2f}" if value == 0 or value >= 1 else f"${value:.4f}"
