"""The Verifier's reading of a failure by a model, before the Coder repairs it: only where it can be worth its tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from apps.agents import verifier
from apps.agents.facts import Fact, StepKey
from apps.agents.ports import Say, Stopped
from apps.agents.steps.course import Course, Interruption
from apps.agents.words import Agent, Attempt, Diagnosis, NoDiagnosis, Usage

DIAGNOSE = "diagnose"
# After so many answers in a row that could not be used, a run's model is taken not to be able to give one.
MOST_UNREAD = 2


@dataclass(frozen=True)
class Diagnosed:
    """What the Verifier's model came to: a diagnosis, why there is none, or an interruption; `text` is all it said."""

    diagnosis: Diagnosis | None = None
    nothing: str | None = None
    stopped: Interruption | None = None
    usage: Usage = field(default_factory=Usage)
    text: str = ""


def diagnose(run: Course, failed: Attempt) -> None:
    """Have the Verifier's model read why a version failed, for the repair that follows. Nothing where it isn't worth it."""
    reader = run.team.verifier
    if reader is None or not _worth_it(run, failed):
        return
    key = StepKey(failed.iteration, failed.slot, DIAGNOSE, failed.repair)
    history = run.history

    def do(say: Say) -> Diagnosed:
        try:
            answer = reader.diagnose(run.assignment, history, failed, say)
        except Stopped as stopped:
            return Diagnosed(stopped=Interruption.of(stopped), usage=stopped.usage, text=stopped.text)
        if isinstance(answer, NoDiagnosis):
            return Diagnosed(nothing=answer.reason, usage=answer.usage, text=answer.said)
        return Diagnosed(replace(answer, said=""), usage=answer.usage, text=answer.said)

    def told(diagnosed: Diagnosed) -> Sequence[Fact]:
        return [run.ended(key, Agent.VERIFIER, _says(diagnosed), diagnosed.text, diagnosed.usage)]

    began = run.began(key, Agent.VERIFIER, f"Reading why v{failed.number} failed")
    diagnosed = run.team.journal.step(key, [run.memory.trail, failed.number], Diagnosed, do, began=began, tell=told)
    run.memory.paid(diagnosed.usage)
    if diagnosed.stopped is not None:
        raise diagnosed.stopped.end()
    run.memory.diagnosed(diagnosed.diagnosis)


def _worth_it(run: Course, failed: Attempt) -> bool:
    """Whether the error leaves something open, answers so far were of use, and the repair can still be paid for.

    A repair is taken to cost what the candidate did. All of this is in the journal, so a replay decides the same.
    """
    if verifier.explained(failed.evaluation) or run.memory.unread >= MOST_UNREAD:
        return False
    limit, cost = run.limits.money_usd, failed.writing.usage.cost_usd
    return limit is None or cost is None or run.memory.spent.cost_usd + 2 * cost <= limit


def _says(diagnosed: Diagnosed) -> str:
    if diagnosed.stopped is not None:
        return diagnosed.stopped.reason
    if diagnosed.diagnosis is None:
        return f"No reading of the error: {diagnosed.nothing}"
    found = diagnosed.diagnosis
    return f"Line {found.line}: {verifier.sentence(found.wrong)} {verifier.sentence(found.change)}"
