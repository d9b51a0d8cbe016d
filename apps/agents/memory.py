"""The memory of a run: its history built up step by step, and what failed and why.

`trail` is a digest that chains everything that went in, in order. It stands for the whole history among a step's inputs,
so that a journal needn't digest a growing history at every step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from apps.agents import verifier
from apps.agents.budget import Spent
from apps.agents.journal import digest
from apps.agents.words import Advice, Attempt, Diagnosis, History, Holding, Unwritten, Usage
from apps.kernels.evaluation import Evaluation, Verdict


def content(source: str) -> str:
    """What a source says, whatever its trailing blanks: two candidates of the same content are the same candidate."""
    lines = [line.rstrip() for line in source.strip().splitlines()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


class Memory:
    """What a run knows. It changes only by results that a journal gave back, so a replay builds the same again."""

    def __init__(self, start: object) -> None:
        self.history = History()
        self.spent = Spent()
        self.trail = digest(start)
        self.confirmed: set[int] = set()  # versions built and checked with Torch's own headers
        self.unread = 0  # failures in a row of which the Verifier's model said nothing that could be used
        self._contents: dict[str, int | None] = {}

    @property
    def next_version(self) -> int:
        """The number the next version gets."""
        return len(self.history.attempts) + 1

    @property
    def next_advice(self) -> int:
        """The number the next advice gets."""
        return len(self.history.advices) + 1

    @property
    def best(self) -> Attempt | None:
        """The best version so far."""
        return self.history.attempt(self.history.best)

    def repeats(self, source: str) -> tuple[bool, int | None]:
        """Whether this content was written before, and the version that has it (None while it has no number yet)."""
        return content(source) in self._contents, self._contents.get(content(source))

    def drafted(self, source: str) -> None:
        """A candidate is written and waits for its evaluation."""
        self._contents.setdefault(content(source), None)

    def keep(self, attempt: Attempt) -> None:
        """A version with its evaluation; the first one that timed the reference gives the run its reference."""
        timed = attempt.evaluation if attempt.evaluation.timing.reference is not None else None
        self._contents[content(attempt.writing.source)] = attempt.number
        self._note(attempt)
        self.history = replace(
            self.history,
            attempts=(*self.history.attempts, attempt),
            reference=self.history.reference or timed,
        )

    def rejudge(self, number: int, evaluation: Evaluation) -> None:
        """A later judgement: where it is not `correct` it takes the place of the version's own."""
        self._note([number, evaluation])
        if evaluation.verdict is Verdict.CORRECT:
            return
        attempts = tuple(
            replace(attempt, evaluation=evaluation) if attempt.number == number else attempt
            for attempt in self.history.attempts
        )
        self.history = replace(self.history, attempts=attempts)

    def drop(self, unwritten: Unwritten) -> None:
        """A candidate that came to no version."""
        self._note(unwritten)
        self.history = replace(self.history, unwritten=(*self.history.unwritten, unwritten))

    def crown(self, number: int | None) -> None:
        """Another version is the best now."""
        self._note(number)
        self.history = replace(self.history, best=number)

    def advised(self, advice: Advice) -> None:
        """The Conductor has advised."""
        self._note(advice)
        self.history = replace(self.history, advices=(*self.history.advices, advice))

    def held(self, holdings: Sequence[Holding]) -> None:
        """Advices were held against what happened."""
        self._note(holdings)
        self.history = replace(self.history, holdings=(*self.history.holdings, *holdings))

    def diagnosed(self, diagnosis: Diagnosis | None) -> None:
        """The Verifier's model was asked why a version failed; None where that came to nothing."""
        if diagnosis is None:
            self.unread += 1
            return
        self.unread = 0
        self._note(diagnosis)
        self.history = replace(self.history, diagnoses=(*self.history.diagnoses, diagnosis))

    def hinted(self, hints: Sequence[str]) -> None:
        """A person has said something."""
        if hints:
            self._note(hints)
            self.history = replace(self.history, hints=(*self.history.hints, *hints))

    def paid(self, usage: Usage) -> None:
        """A call of an agent was made."""
        self.spent = self.spent.plus(usage)

    def _note(self, item: object) -> None:
        self.trail = digest([self.trail, item])


def failures(history: History) -> tuple[str, ...]:
    """What failed and why, in order, one line each: what the next prompt must not let happen again."""
    told = [
        (
            (attempt.iteration, attempt.slot, attempt.repair),
            f"v{attempt.number}: {verifier.summary(attempt.evaluation)}{_read(history.diagnosis(attempt.number))}",
        )
        for attempt in history.attempts
        if attempt.evaluation.verdict is not Verdict.CORRECT
    ]
    told += [
        ((dropped.iteration, dropped.slot, dropped.repair), f"iteration {dropped.iteration}: {dropped.reason}")
        for dropped in history.unwritten
    ]
    return tuple(line for _, line in sorted(told))


def _read(diagnosis: Diagnosis | None) -> str:
    return f" The Verifier reads it so: {verifier.sentence(diagnosis.wrong)}" if diagnosis is not None else ""
