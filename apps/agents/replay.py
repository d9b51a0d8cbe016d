"""A run gone through once more from its record alone: the real loop, and nobody to ask but the journal.

No coder, conductor, device, clock or person takes part. Every step must be in the record, done from the very inputs that
the replay has; the first one that is not ends it and is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from apps.agents.facts import Fact, RunEnded, StepBegan, StepKey
from apps.agents.journal import Record, digest
from apps.agents.loop import optimise
from apps.agents.ports import Say, Step
from apps.agents.steps.course import Team
from apps.agents.steps.diagnosing import DIAGNOSE
from apps.agents.words import Assignment
from apps.kernels.plain import BadPlain, Plain, from_plain

T = TypeVar("T")


class ReplayDiffers(Exception):
    """The record does not carry the loop any further. `step` is the step's key, the message says what is wrong with it."""

    def __init__(self, step: str, what: str) -> None:
        super().__init__(f"Step {step} {what}.")
        self.step = step


@dataclass(frozen=True)
class Telling:
    """Facts that are told together: a step's beginning, or what follows from its result (then `done`)."""

    step: str
    facts: tuple[Fact, ...]
    done: bool


@dataclass(frozen=True)
class Replay:
    """What a replay came to: the run's last word, and everything that was told, in order.

    `records` are the steps in the order in which the loop came to them, with the digests of this replay.
    """

    ended: RunEnded
    tellings: tuple[Telling, ...]
    records: tuple[Record, ...]

    @property
    def facts(self) -> tuple[Fact, ...]:
        """All facts in order."""
        return tuple(fact for telling in self.tellings for fact in telling.facts)


def replay(assignment: Assignment, coder: str, records: Iterable[Record], *, sealed: bool = True) -> Replay:
    """Run the loop over its record. Raises `ReplayDiffers`.

    `coder` is the name of the coder that wrote. Failures are read by a model where the record has such a step: runs of the
    built-in coder and of models that nobody asked to have none. Unless `sealed`, the digests of inputs are not compared
    but made anew: for a record whose texts were altered on purpose (freed of secrets).
    """
    journal = _RecordedJournal(records, sealed=sealed)
    nobody = _Nobody(coder)
    verifier = nobody if journal.has(DIAGNOSE) else None
    ended = optimise(assignment, Team(nobody, nobody, nobody, journal, nobody, nobody, verifier))
    if left := journal.left:
        raise ReplayDiffers(left[0], "is recorded, but the run ends without coming to it")
    return Replay(ended, tuple(journal.tellings), tuple(journal.gone))


class _RecordedJournal:
    """`apps.agents.ports.Journal` that knows only what is recorded."""

    def __init__(self, records: Iterable[Record], *, sealed: bool) -> None:
        self._records = {record.key: record for record in records}
        self._sealed = sealed
        self.tellings: list[Telling] = []
        self.gone: list[Record] = []

    @property
    def left(self) -> list[str]:
        """Steps of the record that the loop has not come to."""
        gone = {record.key for record in self.gone}
        return [key for key in self._records if key not in gone]

    def has(self, role: str) -> bool:
        """Whether the record has a step of that role."""
        return any(key.split(".")[2:3] == [role] for key in self._records)

    def step(
        self,
        key: StepKey,
        inputs: Plain,
        kind: type[T],
        do: Callable[[Say], T],
        *,
        began: StepBegan | None = None,
        tell: Callable[[T], Sequence[Fact]] = lambda result: (),
    ) -> T:
        """See `apps.agents.ports.Journal.step`; never does anything."""
        name, now = str(key), digest(inputs)
        record = self._records.get(name)
        if record is None:
            raise ReplayDiffers(name, "is not in the record")
        if self._sealed and record.inputs != now:
            raise ReplayDiffers(name, "was done from something else than what the replay has come to")
        try:
            result = from_plain(kind, record.result)
        except BadPlain as problem:
            raise ReplayDiffers(name, f"holds no {kind.__name__}: {problem}") from None
        if began is not None:
            self.tellings.append(Telling(name, (began,), done=False))
        self.tellings.append(Telling(name, tuple(tell(result)), done=True))
        self.gone.append(Record(name, now, record.result))
        return result

    def together(self, steps: Sequence[Step[T]], at_once: int) -> list[T]:
        """See `apps.agents.ports.Journal.together`."""
        return [self.step(s.key, s.inputs, s.kind, s.do, began=s.began, tell=s.tell) for s in steps]


class _Nobody:
    """Everyone a run works with, none of whom is ever asked."""

    at_once = 1

    def __init__(self, coder: str) -> None:
        self.name = coder

    def _asked(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("A replay asks nobody.")

    write = repair = advise = diagnose = evaluate = read = now = _asked
