"""The Coder's steps: write a candidate, repair one from what the Verifier said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from apps.agents.facts import CandidateDropped, Fact, StepKey
from apps.agents.ports import Say, Step, Stopped
from apps.agents.steps.course import Course, Interruption
from apps.agents.words import Advice, Agent, Attempt, Brief, CannotWrite, Unwritten, Usage, Writing


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
class Composed:
    """What a Coder came to: a writing, a refusal, or an interruption; `text` is what it said before these two."""

    writing: Writing | None = None
    refusal: str | None = None
    stopped: Interruption | None = None
    usage: Usage = field(default_factory=Usage)
    text: str = ""


@dataclass(frozen=True)
class Written:
    """What an iteration's writing came to: its candidates in slot order, and why no more is to be written, if so."""

    drafts: tuple[Draft, ...]
    stopped: Interruption | None = None


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


@dataclass(frozen=True)
class _Composing:
    """A candidate to be written, with its place."""

    place: Place
    step: Step[Composed]


def seeds(run: Course) -> tuple[Draft, ...]:
    """The versions the run starts from, as candidates of iteration 0."""
    drafts = []
    for slot, one in enumerate(run.assignment.seeds):
        if not run.memory.repeats(one.source)[0]:
            run.memory.drafted(one.source)
            writing = Writing(one.source, f"A version to start from, by {one.author}.", "", one.plan)
            drafts.append(Draft(0, slot, 0, None, one.author, None, writing))
    return tuple(drafts)


def write(run: Course, iteration: int, advices: Sequence[Advice | None]) -> Written:
    """The Coder writes a candidate for each advice, several at once where it can; what came of it in slot order.

    None of them knows of the others: all are written from what the run knew before.
    """
    composed = [_composing(run, iteration, slot, advice, len(advices)) for slot, advice in enumerate(advices)]
    results = run.team.journal.together([one.step for one in composed], run.team.coder.at_once)
    told = [_why_dropped(run, result, one.place) for one, result in zip(composed, results, strict=True)]
    drafts, stopped = [], None
    for one, result, dropped in zip(composed, results, told, strict=True):
        run.memory.paid(result.usage)
        stopped = stopped or result.stopped
        if dropped is None and result.writing is not None and run.memory.repeats(result.writing.source)[0]:
            dropped = _same_as_another(run, one.place)
        if (draft := _kept(run, one.place, result, dropped)) is not None:
            drafts.append(draft)
    return Written(tuple(drafts), stopped)


def _composing(run: Course, iteration: int, slot: int, advice: Advice | None, many: int) -> _Composing:
    brief = Brief(run.assignment, run.history, iteration, slot, advice)
    parent = advice.base if advice is not None else run.memory.history.best
    place = Place(iteration, slot, 0, parent, advice.number if advice is not None else None)
    what = "" if many == 1 else f" candidate {slot + 1} of {many}"
    title = f"Writing{what} from v{parent}" if parent is not None else f"Writing{what or ' a first version'}"
    return _Composing(place, _step(run, "write", title, place, lambda say: run.team.coder.write(brief, say)))


def _same_as_another(run: Course, place: Place) -> Unwritten:
    """A candidate that another of its iteration repeats is dropped once all of them are there."""
    dropped = place.without_version("The same text as another candidate of this iteration.")
    key = StepKey(place.iteration, place.slot, "same")
    return run.team.journal.step(
        key, [run.memory.trail, place], Unwritten, lambda say: dropped, tell=lambda one: [CandidateDropped(one)]
    )


def repair(run: Course, failed: Attempt) -> Draft | None:
    """The Coder mends a version from what the Verifier said of it; None where it can't."""
    advice = next((one for one in run.memory.history.advices if one.number == failed.advice), None)
    brief = Brief(run.assignment, run.history, failed.iteration, failed.slot, advice)
    place = Place(failed.iteration, failed.slot, failed.repair + 1, failed.number, failed.advice)
    title = f"Repairing v{failed.number}"
    step = _step(run, "repair", title, place, lambda say: run.team.coder.repair(brief, failed, say))
    composed = run.team.journal.step(step.key, step.inputs, step.kind, step.do, began=step.began, tell=step.tell)
    run.memory.paid(composed.usage)
    if composed.stopped is not None:
        raise composed.stopped.end()
    return _kept(run, place, composed, _why_dropped(run, composed, place))


def _step(run: Course, role: str, title: str, place: Place, call: Callable[[Say], Writing]) -> Step[Composed]:
    key = StepKey(place.iteration, place.slot, role, place.repair)

    def do(say: Say) -> Composed:
        try:
            writing = call(say)
        except CannotWrite as refusal:
            return Composed(refusal=str(refusal), usage=refusal.usage, text=refusal.text)
        except Stopped as stopped:
            return Composed(stopped=Interruption.of(stopped), usage=stopped.usage, text=stopped.text)
        return Composed(writing, usage=writing.usage)

    def told(composed: Composed) -> Sequence[Fact]:
        dropped = _why_dropped(run, composed, place)
        text = composed.writing.reasoning if composed.writing is not None else composed.text
        ended = run.ended(key, Agent.CODER, _says(composed, dropped), text, composed.usage)
        return [ended] if dropped is None else [ended, CandidateDropped(dropped)]

    began = run.began(key, Agent.CODER, title)
    return Step(key, [run.memory.trail, place], Composed, do, began, told)


def _kept(run: Course, place: Place, composed: Composed, dropped: Unwritten | None) -> Draft | None:
    """The candidate as the run knows it from now on: waiting to be judged, or dropped."""
    if dropped is not None:
        run.memory.drop(dropped)
    if dropped is not None or composed.writing is None:
        return None
    run.memory.drafted(composed.writing.source)
    return Draft(**vars(place), author=run.team.coder.name, writing=composed.writing)


def _why_dropped(run: Course, written: Composed, place: Place) -> Unwritten | None:
    if written.refusal is not None:
        return place.without_version(written.refusal)
    if written.writing is None:
        return None
    known, number = run.memory.repeats(written.writing.source)
    if not known:
        return None
    whose = f"v{number}" if number is not None else "another candidate of this iteration"
    return place.without_version(f"The same text as {whose}.", number)


def _says(written: Composed, dropped: Unwritten | None) -> str:
    if written.stopped is not None:
        return written.stopped.reason
    if written.writing is None:
        return f"Can't be written: {written.refusal}"
    return f"{written.writing.summary} {dropped.reason} Skipped." if dropped is not None else written.writing.summary
