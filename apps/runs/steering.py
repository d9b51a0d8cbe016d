"""What people do to a run: stop, pause, resume, hint, change its limits. One function for each change of state.

Each asks the row itself by a conditional update, so that two people or a person and the worker can't both be right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.db import transaction
from django.utils import timezone

from apps.agents.words import Agent, Ending
from apps.kernels.plain import Plain
from apps.people import audit
from apps.people.models import Person
from apps.runs import events
from apps.runs.events import Entry
from apps.runs.models import LIVE_RUN_STATES, Hint, Run, RunState
from apps.runs.refusals import Refused

HINT_LIMIT = 2000  # characters: a hint joins every later prompt
ITERATIONS_LIMIT = 200


def stop(run: Run, by: Person | None, *, at_once: bool = False) -> None:
    """Stop the run. It keeps its best version and, unless `at_once`, still judges it in full; a queued one just ends."""
    who = str(by or "the person at the terminal")
    data: dict[str, Plain] = {"at_once": at_once, "by": who}
    text = f"{who} stops the run" + (" at once" if at_once else ", keeping the best version")
    asked = Entry("stop_asked", text, Agent.RUN, data=data)
    with transaction.atomic():
        reason = f"Stopped by {who} before it began."
        over = {"state": RunState.STOPPED, "reason": reason, "finished_at": timezone.now()}
        if Run.objects.filter(pk=run.pk, state=RunState.QUEUED).update(**over):
            ended: dict[str, Plain] = {"reason": reason, "ending": Ending.STOPPED.value}
            ended |= {"result": None, "attempt": None, "outcome": None, "speedup": None}
            events.append(run.pk, [asked, Entry("run_ended", reason, Agent.RUN, data=ended)])
            audit.record("run.stopped", by, run)
            return
        stoppable = [RunState.RUNNING, RunState.PAUSED] + ([RunState.STOPPING] if at_once else [])
        if not Run.objects.filter(pk=run.pk, state__in=stoppable).update(state=RunState.STOPPING):
            raise _refusal(run, "stop", {RunState.STOPPING: "is being stopped already."})
        events.append(run.pk, [asked])
        audit.record("run.stopped", by, run, detail="at once" if at_once else "")


def pause(run: Run, by: Person) -> None:
    """Let the run finish the step in hand and wait there."""
    with transaction.atomic():
        if not Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(state=RunState.PAUSED):
            waits = "has not begun; stop it, or let it begin first."
            raise _refusal(run, "pause", {RunState.QUEUED: waits, RunState.PAUSED: "is paused already."})
        text = f"{by} pauses the run after the step in hand"
        events.append(run.pk, [Entry("pause_asked", text, Agent.RUN, data={"by": str(by)})])


def resume(run: Run, by: Person) -> None:
    """Let a paused run go on."""
    with transaction.atomic():
        if not Run.objects.filter(pk=run.pk, state=RunState.PAUSED).update(state=RunState.RUNNING):
            raise _refusal(run, "resume", {RunState.RUNNING: "is running.", RunState.QUEUED: "has not begun yet."})
        events.append(run.pk, [Entry("resumed", f"{by} resumes the run", Agent.RUN, data={"by": str(by)})])


def hint(run: Run, by: Person, text: str) -> Hint:
    """Tell the run something; it joins the next prompt."""
    text = text.strip()
    if not text:
        raise Refused("A hint needs some text.", "text")
    if len(text) > HINT_LIMIT:
        raise Refused(f"A hint has at most {HINT_LIMIT} characters; this one has {len(text)}.", "text")
    with transaction.atomic():
        hintable = [RunState.QUEUED, RunState.RUNNING, RunState.PAUSED]
        if not Run.objects.select_for_update().filter(pk=run.pk, state__in=hintable).exists():
            raise _refusal(
                run, "hint", {RunState.STOPPING: "is being stopped; no prompt follows that a hint could join."}
            )
        row = Hint.objects.create(run_id=run.pk, text=text, by=by)
        data: dict[str, Plain] = {"hint": row.pk, "text": text, "by": str(by)}
        events.append(run.pk, [Entry("hint_given", f"{by}: {text}", Agent.RUN, data=data)])
    return row


@dataclass(frozen=True)
class Limits:
    """New limits; None leaves one as it is."""

    iterations: int | None = None
    seconds: float | None = None
    money_usd: Decimal | None = None
    tokens: int | None = None


def change_limits(run: Run, by: Person, limits: Limits) -> None:
    """Change a live run's limits from its next reading of orders on."""
    if limits.iterations is not None and not 1 <= limits.iterations <= ITERATIONS_LIMIT:
        raise Refused(f"Iterations must lie between 1 and {ITERATIONS_LIMIT}.", "iterations")
    if limits.seconds is not None and limits.seconds <= 0:
        raise Refused("The time limit must be more than 0 seconds.", "seconds")
    if limits.money_usd is not None and limits.money_usd < 0:
        raise Refused("The money limit can't be less than 0.", "money_usd")
    if limits.tokens is not None and limits.tokens <= 0:
        raise Refused("The limit of tokens must be more than 0.", "tokens")
    columns = {
        "iterations": limits.iterations,
        "seconds_limit": limits.seconds,
        "money_limit_usd": limits.money_usd,
        "tokens_limit": limits.tokens,
    }
    changes = {name: value for name, value in columns.items() if value is not None}
    if not changes:
        raise Refused("Name at least one limit to change.")
    names = {"seconds_limit": "seconds", "money_limit_usd": "money_usd", "tokens_limit": "tokens"}
    said: dict[str, Plain] = {names.get(name, name): float(value) for name, value in changes.items()}
    text = f"{by} changes limits: " + ", ".join(f"{name} {value:.12g}" for name, value in said.items())
    with transaction.atomic():
        open_states = [RunState.QUEUED, RunState.RUNNING, RunState.PAUSED]
        if not Run.objects.filter(pk=run.pk, state__in=open_states).update(**changes):
            raise _refusal(run, "change", {RunState.STOPPING: "is being stopped."})
        events.append(run.pk, [Entry("limits_changed", text, Agent.RUN, data={**said, "by": str(by)})])
        audit.record("run.limits_changed", by, run, detail=text.partition("limits: ")[2])


@dataclass(frozen=True)
class BulkOutcome:
    """What became of each run of a bulk action: those it worked for, and why it did not for the others."""

    done: tuple[int, ...]
    refused: tuple[tuple[int, str], ...]


def bulk(runs: Iterable[Run], act: Callable[[Run], object]) -> BulkOutcome:
    """Do `act` to each run, each in its own transaction; a refusal of one stops no other."""
    done, refused = [], []
    for run in runs:
        try:
            act(run)
            done.append(run.pk)
        except Refused as refusal:
            refused.append((run.pk, refusal.message))
    return BulkOutcome(tuple(done), tuple(refused))


def _refusal(run: Run, verb: str, why: dict[RunState, str]) -> Refused:
    state = RunState(Run.objects.values_list("state", flat=True).get(pk=run.pk))
    if state not in LIVE_RUN_STATES:
        return Refused(f"Run {run.pk} has ended ({state.label.lower()}); there is nothing to {verb}.")
    return Refused(f"Run {run.pk} " + why.get(state, f"is {state.label.lower()}, so you can't {verb} it now."))
