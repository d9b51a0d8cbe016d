"""Who works on a run: one worker at a time, by one conditional update; a silent one loses it to the next.

A claim lives for `LIFE` and is renewed by one beat a process. Every write a worker makes says `where claim = mine`
(`hold`, or `events.append` with the claim), so that a stalled worker can't write after its successor.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Case, DateTimeField, F, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.agents.words import Agent, Ending
from apps.kernels.plain import Plain
from apps.runs import events
from apps.runs.events import ClaimLost, Entry
from apps.runs.models import LIVE_RUN_STATES, Draft, Event, Level, Run, RunState, new_claim

LIFE = timedelta(seconds=20)
FRUITLESS_LIMIT = 3


@dataclass(frozen=True)
class Claim:
    """One worker's hold on one run."""

    run_id: int
    id: UUID
    attempt: int


def _free(now: datetime) -> Q:
    """Runs that nobody works on though they should be worked on."""
    unclaimed = Q(claim__isnull=True) | Q(claim_expires_at__lt=now)
    return Q(state__in=LIVE_RUN_STATES) & unclaimed


def take(run_id: int) -> Claim | None:
    """Claim the run, or None if another worker has it, it is over, or it has failed too often."""
    now, claim = timezone.now(), new_claim()
    with transaction.atomic():
        free = Run.objects.filter(_free(now), pk=run_id, fruitless__lt=FRUITLESS_LIMIT)
        taken = free.update(
            claim=claim,
            claim_expires_at=now + LIFE,
            attempt=F("attempt") + 1,
            fruitless=F("fruitless") + 1,
            started_at=Coalesce("started_at", Value(now, DateTimeField())),
            state=Case(When(state=RunState.QUEUED, then=Value(RunState.RUNNING)), default=F("state")),
        )
        if not taken:
            return None
        Draft.objects.filter(run_id=run_id).delete()
        attempt = int(Run.objects.values_list("attempt", flat=True).get(pk=run_id))
        text = "A worker has started on the run" if attempt == 1 else f"A worker resumes the run (attempt {attempt})"
        events.append(run_id, [Entry("claimed", text, Agent.RUN, data={"attempt": attempt})], claim=claim)
    return Claim(run_id, claim, attempt)


def hold(claim: Claim) -> None:
    """Lock the run's row for the open transaction. Raises `ClaimLost` if the claim is no longer good."""
    if not Run.objects.filter(pk=claim.run_id, claim=claim.id).update(claim_expires_at=timezone.now() + LIFE):
        raise ClaimLost(f"Run {claim.run_id} is no longer held by claim {claim.id}.")


def renew(claims: set[UUID]) -> set[UUID]:
    """Renew those claims; the ones that are still good."""
    mine = Run.objects.filter(claim__in=claims, state__in=LIVE_RUN_STATES)
    mine.update(claim_expires_at=timezone.now() + LIFE)
    return {claim for claim in mine.values_list("claim", flat=True) if claim is not None}


def living(claims: set[UUID]) -> set[UUID]:
    """Those of the claims that some worker holds now."""
    if not claims:
        return set()
    held = Run.objects.filter(claim__in=claims, claim_expires_at__gte=timezone.now())
    return {claim for claim in held.values_list("claim", flat=True) if claim is not None}


def release(claim: Claim) -> None:
    """Give the run back unharmed because this worker is leaving; another takes it at once. Counts as no failed attempt."""
    returned = Case(When(fruitless__gt=0, then=F("fruitless") - 1), default=Value(0))
    entry = Entry("released", "The worker is being restarted and gave the run back", Agent.RUN)
    _let_go(claim, entry, fruitless=returned)


def give_up(claim: Claim, why: str) -> None:
    """This attempt ended in an error of the machinery. The run is tried again unless `FRUITLESS_LIMIT` is reached."""
    text = f"Attempt {claim.attempt} broke off: {why}"
    _let_go(claim, Entry("released", text, Agent.RUN, level=Level.ERROR))
    fail_hopeless(claim.run_id)


def _let_go(claim: Claim, entry: Entry, **changes: object) -> None:
    try:
        with transaction.atomic():
            events.append(claim.run_id, [entry], claim=claim.id)
            Draft.objects.filter(run_id=claim.run_id).delete()
            Run.objects.filter(pk=claim.run_id, claim=claim.id).update(
                claim=None, claim_expires_at=None, doing="", **changes
            )
    except ClaimLost:
        return


def find_lost() -> list[int]:
    """Note which runs have lost their worker, fail the hopeless ones; the runs that wait for a worker now."""
    now = timezone.now()
    for run_id in list(Run.objects.filter(_free(now), fruitless__gte=FRUITLESS_LIMIT).values_list("pk", flat=True)):
        fail_hopeless(run_id)
    expired: QuerySet[Run] = Run.objects.filter(_free(now), claim__isnull=False)
    for run in expired.only("pk", "attempt", "claim"):
        _note_lost(run, now)
    return list(Run.objects.filter(_free(now)).order_by("pk").values_list("pk", flat=True))


def _note_lost(run: Run, now: datetime) -> None:
    """Append `lost` once for each attempt."""
    with transaction.atomic():
        still = Run.objects.filter(_free(now), pk=run.pk, claim=run.claim)
        if not still.update(doing=""):
            return
        latest = Event.objects.filter(run_id=run.pk, kind__in=["claimed", "lost"]).order_by("-seq").first()
        if latest is not None and latest.kind == "claimed":
            text = f"The worker of attempt {run.attempt} has gone silent; the run will be resumed"
            entry = Entry("lost", text, Agent.RUN, level=Level.WARNING, data={"attempt": run.attempt})
            events.append(run.pk, [entry], claim=run.claim)


def fail_hopeless(run_id: int) -> bool:
    """End a run whose last `FRUITLESS_LIMIT` attempts came to nothing new. Whether it was one."""
    now = timezone.now()
    with transaction.atomic():
        hopeless = Run.objects.filter(_free(now), pk=run_id, fruitless__gte=FRUITLESS_LIMIT)
        broke = Event.objects.filter(run_id=run_id, kind="released", level=Level.ERROR).order_by("-seq").first()
        last = broke.text.rstrip(".") + "." if broke is not None else "Its worker went silent each time."
        reason = f"{FRUITLESS_LIMIT} attempts in a row came to no new step. {last} See the log, then run it again."
        if not hopeless.update(
            state=RunState.FAILED, reason=reason, finished_at=now, claim=None, claim_expires_at=None, doing=""
        ):
            return False
        Draft.objects.filter(run_id=run_id).delete()
        data: dict[str, Plain] = {"reason": reason, "ending": Ending.FAILED.value}
        data |= {"result": None, "attempt": None, "outcome": None, "speedup": None}
        events.append(run_id, [Entry("run_ended", f"Failed: {reason}", Agent.RUN, level=Level.ERROR, data=data)])
    return True


def fail(claim: Claim, reason: str) -> None:
    """End the run as failed for a reason that another attempt can't mend."""
    data: dict[str, Plain] = {"reason": reason, "ending": Ending.FAILED.value}
    data |= {"result": None, "attempt": None, "outcome": None, "speedup": None}
    entry = Entry("run_ended", f"Failed: {reason}", Agent.RUN, level=Level.ERROR, data=data)
    _let_go(claim, entry, state=RunState.FAILED, reason=reason, finished_at=timezone.now())
