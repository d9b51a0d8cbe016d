"""Calls as they are paid: reserved before they are made, settled with what they took, released when their worker died.

Each is one transaction. A reservation locks the limits' row, so that runs and calls side by side can't spend the same dollar
or the same token twice.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.db.models import Sum
from django.utils import timezone

from apps.agents.gateway.purse import Call as Made
from apps.agents.gateway.purse import Largest, OverLimit
from apps.agents.words import Usage
from apps.ledger import warning
from apps.ledger.limits import ZERO, Account, counting, dollars, locked, month_of, rooms
from apps.ledger.models import Call, LanguageModel, Outcome

# How much longer than its longest time a call is waited for before its worker is given up.
GRACE = timedelta(minutes=2)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """Where in a run a call is made: for which agent, in which step, which call of it, after how many failed tries."""

    agent: str
    step: str = ""
    iteration: int | None = None
    slot: int | None = None
    attempt: int | None = None
    number: int = 1
    retries: int = 0


def reserve(model: LanguageModel, account: Account, place: Place, largest: Largest, claim: UUID | None = None) -> int:
    """Set aside the most the call can take; the call's number. Raises `OverLimit`.

    Whatever another claim of the same run had set aside is released first: its worker has lost the run.
    """
    now, cost = timezone.now(), _money(largest.cost_usd)
    with transaction.atomic():
        limits = locked()
        if account.run is not None and claim is not None:
            _release({*Call.objects.filter(run=account.run).exclude(claim=claim).values_list("pk", flat=True)}, now)
        own = _on_their_way(account, now)
        _check_tokens(model, account, largest.tokens, own.tokens, now)
        for room in rooms(limits, account, now):
            if cost is None:
                raise OverLimit(
                    f"{room.whose} is {dollars(room.limit)}, and the price of {model.name} is unknown, so it can't be kept "
                    "to. An admin can type the price in under Settings › Models."
                )
            if cost > room.left:
                raise OverLimit(
                    f"{room.whose} of {dollars(room.limit)} leaves {dollars(room.left)}, and this call of {model.name} could "
                    f"cost {dollars(cost)}. {room.remedy}",
                    may_pass=cost <= room.left + own.usd,
                )
        return _opened(model, account, place, cost, largest.tokens, claim, now).pk


def settle(number: int, made: Made) -> None:
    """Write what a call came to, however it ended. Holds for one that was given up meanwhile, too: it did cost that."""
    usage = made.usage
    cost = _money(usage.cost_usd)
    Call.objects.filter(pk=number).update(
        outcome=_outcome(made),
        fault=made.fault or "",
        failure=(made.failure or "")[:2000],
        cost_usd=cost,
        counted_usd=cost or ZERO,
        counted_tokens=(usage.tokens_in or 0) + (usage.tokens_out or 0),
        estimated=usage.estimated,
        ended_at=timezone.now(),
        **_tokens(usage),
    )
    warning.tell_spending(number)


def release_lost(living: Collection[UUID]) -> int:
    """Release what claims set aside that no worker holds any more, and what can't still be on its way; how many."""
    now = timezone.now()
    with transaction.atomic():
        open_calls = Call.objects.filter(outcome=Outcome.OPEN)
        dead = open_calls.filter(claim__isnull=False).exclude(claim__in=living)
        numbers = {*dead.values_list("pk", flat=True)}
        numbers |= {*open_calls.filter(expires_at__lt=now).values_list("pk", flat=True)}
        return _release(numbers, now)


def open_claims() -> set[UUID]:
    """The claims that have something set aside."""
    calls = Call.objects.filter(outcome=Outcome.OPEN, claim__isnull=False)
    return {claim for claim in calls.values_list("claim", flat=True).distinct() if claim is not None}


def _release(numbers: Collection[int], now: datetime) -> int:
    lost = Call.objects.filter(pk__in=numbers, outcome=Outcome.OPEN)
    released = lost.update(
        outcome=Outcome.LOST,
        counted_usd=ZERO,
        counted_tokens=0,
        failure="The worker that made this call died; what it cost is unknown.",
        ended_at=now,
    )
    if released:
        log.warning("%s call(s) of workers that died are no longer set aside", released)
    return released


def _opened(
    model: LanguageModel,
    account: Account,
    place: Place,
    cost: Decimal | None,
    tokens: int,
    claim: UUID | None,
    now: datetime,
) -> Call:
    return Call.objects.create(
        model=model,
        run=account.run,
        person_id=account.person,
        month=month_of(now),
        claim=claim,
        agent=place.agent,
        step=place.step,
        iteration=place.iteration,
        slot=place.slot,
        attempt=place.attempt,
        number=place.number,
        retries=place.retries,
        reserved_usd=cost,
        counted_usd=cost or ZERO,
        reserved_tokens=tokens,
        counted_tokens=tokens,
        began_at=now,
        expires_at=now + timedelta(seconds=model.call_seconds) + GRACE,
    )


@dataclass(frozen=True)
class _Aside:
    """What a run has set aside for calls on their way: they may take less, and then there is more room."""

    usd: Decimal = ZERO
    tokens: int = 0


def _on_their_way(account: Account, now: datetime) -> _Aside:
    if account.run is None:
        return _Aside()
    open_calls = counting(now).filter(run=account.run, outcome=Outcome.OPEN)
    sums = open_calls.aggregate(usd=Sum("counted_usd"), tokens=Sum("counted_tokens"))
    return _Aside(sums["usd"] or ZERO, sums["tokens"] or 0)


def _check_tokens(model: LanguageModel, account: Account, most: int, own: int, now: datetime) -> None:
    limit = account.run_limit_tokens
    if limit is None or account.run is None:
        return
    left = max(limit - tokens_of(account.run, now), 0)
    if most > left:
        raise OverLimit(
            f"The run's limit of {limit:,} tokens leaves {left:,}, and this call of {model.name} could take {most:,}, "
            "prompt and longest answer. Raise the run's limit, or let it end.",
            may_pass=most <= left + own,
        )


def tokens_of(run: int, now: datetime) -> int:
    """All tokens that a run's calls have taken or set aside, in and out."""
    total: int | None = counting(now).filter(run=run).aggregate(total=Sum("counted_tokens"))["total"]
    return total or 0


def _outcome(made: Made) -> Outcome:
    if made.failure is None:
        return Outcome.ANSWERED if made.complete else Outcome.CUT
    return Outcome.FAILED if made.fault else Outcome.STOPPED


def _tokens(usage: Usage) -> dict[str, int | float | None]:
    return {
        "tokens_in": usage.tokens_in,
        "tokens_out": usage.tokens_out,
        "tokens_cached": usage.tokens_cached,
        "tokens_reasoning": usage.tokens_reasoning,
        "seconds": usage.seconds,
    }


def _money(amount: float | None) -> Decimal | None:
    return None if amount is None else Decimal(str(amount)).quantize(Decimal("1e-8"))
