"""Nothing is paid for twice: the digest of a step's inputs, and a journal in memory with its transcript.

The journal that lives in the database keeps to the same rules (`apps.agents.ports.Journal`) and uses `digest` and
`settled` from here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from apps.agents.facts import Fact, ReplayEnded, StepBegan, StepKey
from apps.agents.ports import Listener, Say, Step
from apps.agents.words import Agent
from apps.kernels.plain import Plain, from_plain, to_plain

T = TypeVar("T")


def digest(inputs: object) -> str:
    """SHA-256 of the inputs as canonical JSON: the same for a fresh dataclass and for one read back."""
    text = json.dumps(to_plain(inputs), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def settled(kind: type[T], result: T) -> tuple[Plain, T]:
    """A fresh result as the JSON data to record, and as a replay of that data would give it."""
    plain = json.loads(json.dumps(to_plain(result)))
    return plain, from_plain(kind, plain)


@dataclass(frozen=True)
class Record:
    """One step that is done: its key as text, the digest of its inputs, its result as plain data."""

    key: str
    inputs: str
    result: Plain


class MemoryJournal:
    """A journal that lives as long as its process: for headless runs, tests, and replaying a transcript.

    `records` are what is already done, in order. With `retell` the facts of replayed steps are told again, for a
    listener that never heard them: a finished run can so be shown from its transcript without any model.
    """

    def __init__(self, listener: Listener, records: Iterable[Record] = (), *, retell: bool = False) -> None:
        self._listener = listener
        self._records = {record.key: record for record in records}
        self._retell = retell

    @property
    def records(self) -> tuple[Record, ...]:
        """Every step done, in order."""
        return tuple(self._records.values())

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
        """See `apps.agents.ports.Journal.step`."""
        name, inputs_digest = str(key), digest(inputs)
        known = self._records.get(name)
        if known is not None and known.inputs == inputs_digest:
            result = from_plain(kind, known.result)
            if self._retell:
                self._tell([*([began] if began else []), *tell(result)])
            return result
        if known is not None:
            self._forget_from(name)
            self._tell([ReplayEnded(name)])
        if began is not None:
            self._tell([began])
        plain, result = settled(kind, do(self._say(name, began)))
        self.commit(Record(name, inputs_digest, plain), tell(result))
        return result

    def together(self, steps: Sequence[Step[T]], at_once: int) -> list[T]:
        """See `apps.agents.ports.Journal.together`; one after the other."""
        return [self.step(s.key, s.inputs, s.kind, s.do, began=s.began, tell=s.tell) for s in steps]

    def commit(self, record: Record, facts: Sequence[Fact]) -> None:
        """Keep the record and tell what follows from it; both or, where this raises before it starts, neither."""
        self._records[record.key] = record
        self._tell(facts)

    def _forget_from(self, name: str) -> None:
        keys = list(self._records)
        for key in keys[keys.index(name) :]:
            del self._records[key]

    def _tell(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            self._listener.fact(fact)

    def _say(self, step: str, began: StepBegan | None) -> Say:
        agent = began.agent if began else Agent.RUN
        return lambda text: self._listener.text(step, agent, text)


def to_transcript(records: Iterable[Record]) -> str:
    """A run's journal as JSON lines, one step a line."""
    return "".join(json.dumps(to_plain(record), ensure_ascii=False) + "\n" for record in records)


def from_transcript(text: str) -> tuple[Record, ...]:
    """The journal that a transcript holds. Raises `ValueError` where a line is no record of a step, naming the line."""
    records = []
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            records.append(from_plain(Record, json.loads(line)))
        except ValueError as problem:
            raise ValueError(f"line {number} of the transcript is no step of a run: {problem}") from None
    return tuple(records)
