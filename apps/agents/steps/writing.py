"""The Coder's steps: write a candidate, repair one from what the Verifier said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from apps.agents.ports import (
    Advice,
    Agent,
    Attempt,
    Brief,
    CandidateDropped,
    CannotWrite,
    Fact,
    Say,
    StepKey,
    Stopped,
    Unwritten,
    Usage,
    Writing,
)
from apps.agents.steps.course import Course, Interruption


@dataclass(frozen=True)
class Draft:
    """A candidate that is written and not judged yet, with its place in the run."""

    iteration: int
    slot: int
    repair: int
    parent: int | None
    author: str
    advice: int | None
    writing: Writing


@dataclass(frozen=True)
class Written:
    """What a Coder came to: a writing, a refusal, or an interruption; `text` is what it said before these two."""

    writing: Writing | None = None
    refusal: str | None = None
    stopped: Interruption | None = None
    usage: Usage = field(default_factory=Usage)
    text: str = ""


@dataclass(frozen=True)
class Place:
    """Where in the run something is written, and after which advice."""

    iteration: int
    slot: int
    repair: int
    parent: int | None
    advice: int | None

    def without_version(self, reason: str, copy_of: int | None = None) -> Unwritten:
        """Nothing came of it, for this reason."""
        return Unwritten(self.iteration, self.slot, self.repair, self.advice, reason, copy_of)


def seeds(run: Course) -> tuple[Draft, ...]:
    """The versions the run starts from, as candidates of iteration 0."""
    drafts = []
    for slot, one in enumerate(run.assignment.seeds):
        if not run.memory.repeats(one.source)[0]:
            run.memory.drafted(one.source)
            writing = Writing(one.source, f"A version to start from, by {one.author}.", "", one.plan)
            drafts.append(Draft(0, slot, 0, None, one.author, None, writing))
    return tuple(drafts)


def write(run: Course, iteration: int, slot: int, advice: Advice | None) -> Draft | None:
    """The Coder writes a candidate; None where it can't, or wrote what was there already."""
    brief = Brief(run.assignment, run.history, iteration, slot, advice)
    parent = advice.base if advice is not None else run.memory.history.best
    place = Place(iteration, slot, 0, parent, advice.number if advice is not None else None)
    title = f"Writing from v{parent}" if parent is not None else "Writing a first version"
    return _compose(run, "write", title, place, lambda say: run.team.coder.write(brief, say))


def repair(run: Course, failed: Attempt) -> Draft | None:
    """The Coder mends a version from what the Verifier said of it; None where it can't."""
    advice = next((one for one in run.memory.history.advices if one.number == failed.advice), None)
    brief = Brief(run.assignment, run.history, failed.iteration, failed.slot, advice)
    place = Place(failed.iteration, failed.slot, failed.repair + 1, failed.number, failed.advice)
    return _compose(
        run, "repair", f"Repairing v{failed.number}", place, lambda say: run.team.coder.repair(brief, failed, say)
    )


def _compose(run: Course, role: str, title: str, place: Place, call: Callable[[Say], Writing]) -> Draft | None:
    key = StepKey(place.iteration, place.slot, role, place.repair)

    def do(say: Say) -> Written:
        try:
            writing = call(say)
        except CannotWrite as refusal:
            return Written(refusal=str(refusal), usage=refusal.usage, text=refusal.text)
        except Stopped as stopped:
            return Written(stopped=Interruption.of(stopped), usage=stopped.usage, text=stopped.text)
        return Written(writing, usage=writing.usage)

    def told(written: Written) -> Sequence[Fact]:
        dropped = _why_dropped(run, written, place)
        text = written.writing.reasoning if written.writing is not None else written.text
        ended = run.ended(key, Agent.CODER, _says(written, dropped), text, written.usage)
        return [ended] if dropped is None else [ended, CandidateDropped(dropped)]

    began = run.began(key, Agent.CODER, title)
    written = run.team.journal.step(key, [run.memory.trail, place], Written, do, began=began, tell=told)
    run.memory.paid(written.usage)
    if written.stopped is not None:
        raise written.stopped.end()
    dropped = _why_dropped(run, written, place)
    if dropped is not None or written.writing is None:
        run.memory.drop(dropped or place.without_version("Nothing was written."))
        return None
    run.memory.drafted(written.writing.source)
    return Draft(**vars(place), author=run.team.coder.name, writing=written.writing)


def _why_dropped(run: Course, written: Written, place: Place) -> Unwritten | None:
    if written.refusal is not None:
        return place.without_version(written.refusal)
    if written.writing is None:
        return None
    known, number = run.memory.repeats(written.writing.source)
    if not known:
        return None
    whose = f"v{number}" if number is not None else "another candidate of this iteration"
    return place.without_version(f"The same text as {whose}.", number)


def _says(written: Written, dropped: Unwritten | None) -> str:
    if written.stopped is not None:
        return written.stopped.reason
    if written.writing is None:
        return f"Can't be written: {written.refusal}"
    return f"{written.writing.summary} {dropped.reason} Skipped." if dropped is not None else written.writing.summary
