"""What the loop needs from the world. It knows these protocols alone, so it runs without Django, a model or a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from apps.agents.facts import Fact, StepBegan, StepKey
from apps.agents.words import (
    Advice,
    Agent,
    Assignment,
    Attempt,
    Brief,
    Diagnosis,
    Ending,
    History,
    NoDiagnosis,
    NothingToGain,
    Orders,
    Usage,
    Writing,
)
from apps.kernels.evaluation import Evaluation, Tier
from apps.kernels.plain import Plain

T = TypeVar("T")
Say = Callable[[str], None]


class Coder(Protocol):
    """Writes kernels. Both calls stream their reasoning through `say` and may raise `CannotWrite`.

    `at_once` of an iteration's candidates may be asked for at the same time, from a thread each.
    """

    name: str
    at_once: int

    def write(self, brief: Brief, say: Say) -> Writing: ...

    def repair(self, brief: Brief, failed: Attempt, say: Say) -> Writing: ...


class Conductor(Protocol):
    """Reasons from the history to the next change. With the profile off it sees verdicts and times only.

    Asked once for each candidate of the next iteration; advices just given for it are the last in `history.advices`.
    Asked only while some version is correct (`history.best`). The loop numbers the advice; `number` is ignored.
    """

    def advise(self, assignment: Assignment, history: History, say: Say) -> Advice | NothingToGain: ...


class Verifier(Protocol):
    """Reads why a candidate failed, where the judge's own words leave that open (`apps.agents.verifier.explained`).

    Asked before a repair only. Raises `Stopped`, but not for want of money: then there is no diagnosis.
    """

    def diagnose(
        self, assignment: Assignment, history: History, failed: Attempt, say: Say
    ) -> Diagnosis | NoDiagnosis: ...


class Evaluator(Protocol):
    """Judges candidates on the run's device. `key` is the same again when a run is resumed: the work is not done twice.

    A key names its content too: another source comes under another key (at most 60 characters). `against` is another
    candidate's source to be timed against instead of the reference; `real_headers` builds `load_inline` code with
    Torch's own headers. `finishing` marks what is still done after a stop: only an order to end at once may interrupt
    it. Raises `JudgingFailed` where the host could not judge, which says nothing of the candidate, and `Stopped`.
    """

    def evaluate(
        self,
        key: str,
        source: str,
        tier: Tier,
        *,
        profile: bool,
        say: Say,
        against: str | None = None,
        real_headers: bool = False,
        finishing: bool = False,
    ) -> Evaluation: ...


class JudgingFailed(Exception):
    """The device could not judge (lost host, broken toolchain); the message says what and what to do."""


class Control(Protocol):
    """Orders from outside, read at named points only. Waits inside while the run is paused."""

    def read(self, point: str) -> Orders: ...


class Stopped(Exception):
    """The work in hand was stopped; raised out of a blocking port with the reason as message.

    The loop journals it like a result, keeps the best and, unless `at_once`, still judges it in full. A worker that has
    lost its claim raises something else, which leaves the loop with nothing journalled. `ending` says how the run ends of
    it: by an order, at a limit (`FINISHED`), or because a model can't be used at all (`FAILED`). `text` is what was said
    until then.
    """

    def __init__(
        self,
        reason: str = "Stopped.",
        *,
        at_once: bool = False,
        usage: Usage | None = None,
        text: str = "",
        ending: Ending = Ending.STOPPED,
    ) -> None:
        super().__init__(reason)
        self.at_once = at_once
        self.usage = usage or Usage()
        self.text = text
        self.ending = ending


class Clock(Protocol):
    """Seconds, never going back, not even when the run is resumed by another process (so: the wall's).

    Journalled wherever the loop decides by it.
    """

    def now(self) -> float: ...


class Listener(Protocol):
    """Hears facts in order, and streaming text of a step between them."""

    def fact(self, fact: Fact) -> None: ...

    def text(self, step: str, agent: Agent, text: str) -> None: ...


@dataclass(frozen=True)
class Step(Generic[T]):
    """One step as `Journal.step` takes it."""

    key: StepKey
    inputs: Plain
    kind: type[T]
    do: Callable[[Say], T]
    began: StepBegan | None = None
    tell: Callable[[T], Sequence[Fact]] = lambda result: ()


class Journal(Protocol):
    """Nothing is paid for twice.

    `step` gives back what was recorded under `key`, or does it and records it. The facts that `tell` derives from a
    fresh result are told in the same transaction as the record is made, and never again on replay; `began` is told
    before the work. `inputs` is digested (`apps.agents.journal.digest`): where the digest differs from the recorded one
    the replay ends there, is said so (`ReplayEnded`), and the step and everything after it is done anew. The `say`
    handed to `do` streams the step's text. What comes back is what a replay would give, fresh results included: it has
    been to plain JSON data and back. What `do` raises passes through, and nothing is recorded.

    `together` does steps that don't depend on each other, at most so many at once, each recorded as soon as it is done:
    a worker that dies repeats only those that were still going on. The results come in the order of the steps. Where one
    raises, the others are waited for.
    """

    def step(
        self,
        key: StepKey,
        inputs: Plain,
        kind: type[T],
        do: Callable[[Say], T],
        *,
        began: StepBegan | None = None,
        tell: Callable[[T], Sequence[Fact]] = lambda result: (),
    ) -> T: ...

    def together(self, steps: Sequence[Step[T]], at_once: int) -> list[T]: ...
