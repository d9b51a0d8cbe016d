"""What the loop needs from the world, and what it says of itself.

The loop knows these protocols and frozen facts alone, so it runs without Django, a model or a GPU. Everything here is
plain data (`apps.kernels.plain`), because all of it is journalled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from apps.kernels.evaluation import Evaluation, EvaluationRequest, Language, Outcome, Policy, Tier
from apps.kernels.facts import ProblemFacts
from apps.kernels.machine import HostReport
from apps.kernels.plain import Plain

T = TypeVar("T")
Say = Callable[[str], None]


class Agent(StrEnum):
    """Who speaks: the four of the paper, and the run itself."""

    CODER = "coder"
    VERIFIER = "verifier"
    PROFILER = "profiler"
    CONDUCTOR = "conductor"
    RUN = "run"


# --- what is asked for ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Seed:
    """A version the run starts from: an earlier best, an accepted kernel, or a person's own candidate."""

    source: str
    author: str
    plan: Plain = None


@dataclass(frozen=True)
class Assignment:
    """One run as the loop sees it. Everything in it is pinned when the run starts."""

    problem: str
    facts: ProblemFacts
    host: HostReport
    language: Language = Language.CPP
    policy: Policy = Policy.LIBRARY
    overrides: dict[str, int | float | bool | str] = field(default_factory=dict)
    iterations: int = 8
    candidates: int = 1
    repairs: int = 2
    profile: bool = True
    goal: float | None = None
    plateau: int = 4
    seconds: float | None = None
    money_usd: float | None = None
    allow_weak_isolation: bool = False
    prompts: str = "1"
    seeds: tuple[Seed, ...] = ()

    def request(
        self, source: str, tier: Tier, *, profile: bool, against: str | None, real_headers: bool
    ) -> EvaluationRequest:
        """What a host is asked about one candidate of this run."""
        return EvaluationRequest(
            problem=self.problem,
            candidate=source,
            language=self.language,
            policy=self.policy,
            tier=tier,
            overrides=self.overrides,
            profile=profile,
            against=against,
            real_headers=real_headers,
            allow_weak_isolation=self.allow_weak_isolation,
        )


# --- what is written --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Usage:
    """What one call of an agent took. Money is None where the price is unknown, never 0 instead.

    `estimated` says that the model's server counted no tokens, so that they were estimated here. Of `tokens_in` so many
    were `tokens_cached`, of `tokens_out` so many `tokens_reasoning`, where the server says so.
    """

    seconds: float = 0.0
    model: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost_usd: float | None = None
    estimated: bool = False
    tokens_cached: int | None = None
    tokens_reasoning: int | None = None


@dataclass(frozen=True)
class Writing:
    """A candidate as a Coder hands it over. `plan` is the coder's own data about it (the built-in coder's schedule)."""

    source: str
    summary: str
    reasoning: str
    plan: Plain = None
    usage: Usage = field(default_factory=Usage)


class CannotWrite(Exception):
    """The coder can't write this kernel; the message names the operation or reason, for a person to read.

    `usage` is what finding that out took, so that it is counted all the same; `text` is what was said on the way.
    """

    def __init__(self, message: str, usage: Usage | None = None, text: str = "") -> None:
        super().__init__(message)
        self.usage = usage or Usage()
        self.text = text


@dataclass(frozen=True)
class Evidence:
    """A metric that exists in the profile, its value then, and the threshold it is held against (`relation`: > or <)."""

    metric: str
    value: float
    unit: str
    relation: str
    threshold: float


@dataclass(frozen=True)
class Prediction:
    """What should become of a metric: the next version's value over the present one's, with a range."""

    metric: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Advice:
    """The Conductor's reading of a profile. `base` is the number of the version it speaks of, `move` is for machines.

    `reasoning` is for the reader of the advice; `said` is all that was said on the way to it, which the loop keeps as its
    step's text and not in the advice.
    """

    number: int
    base: int
    bottleneck: str
    evidence: tuple[Evidence, ...]
    change: str
    expected: tuple[Prediction, ...]
    reasoning: str = ""
    move: Plain = None
    usage: Usage = field(default_factory=Usage)
    said: str = ""


# `Evidence.metric` and `Prediction.metric` name a metric of `apps.agents.profiler.metrics`: the profile's own, and
# `time_over_reference`, which is there for every correct version.


@dataclass(frozen=True)
class NothingToGain:
    """The Conductor sees nothing worth a try; the reason is shown and the loop ends."""

    reason: str
    usage: Usage = field(default_factory=Usage)
    reasoning: str = ""


@dataclass(frozen=True)
class Happened:
    """One prediction held against what was measured."""

    metric: str
    predicted: float
    low: float
    high: float
    before: float
    after: float
    held: bool


@dataclass(frozen=True)
class Holding:
    """An advice held against the version that followed it. `held` is None where nothing comparable was measured."""

    advice: int
    version: int
    held: bool | None
    happened: tuple[Happened, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """A version as the loop keeps it: numbered from 1 within the run, with its parent, author and evaluation.

    `slot` is its place among an iteration's candidates; `repair` counts repairs of the same slot (0 first writing).
    """

    number: int
    iteration: int
    slot: int
    repair: int
    parent: int | None
    author: str
    writing: Writing
    advice: int | None
    evaluation: Evaluation


@dataclass(frozen=True)
class Unwritten:
    """A candidate that never became a version: the coder couldn't write it, or wrote what was there already.

    `copy_of` is the version whose text it repeats, where that is why. An advice that ended so has no `Holding`.
    """

    iteration: int
    slot: int
    repair: int
    advice: int | None
    reason: str
    copy_of: int | None = None


@dataclass(frozen=True)
class Diagnosis:
    """The Verifier's reading of a failure: what is wrong with the version, at which line of it (from 1), what to change.

    `said` is all that was said on the way to it, which the loop keeps as its step's text.
    """

    version: int
    wrong: str
    line: int
    change: str
    usage: Usage = field(default_factory=Usage)
    said: str = ""


@dataclass(frozen=True)
class NoDiagnosis:
    """The Verifier's model said nothing that can be used; the error stands for itself."""

    reason: str
    usage: Usage = field(default_factory=Usage)
    said: str = ""


@dataclass(frozen=True)
class History:
    """Everything a run knows, in order: what coder and conductor reason from.

    With the profile off no evaluation in it carries a profile. `reference` is the first evaluation that timed the
    reference; an attempt that failed a later judgement carries that judgement instead of its first.
    """

    attempts: tuple[Attempt, ...] = ()
    advices: tuple[Advice, ...] = ()
    holdings: tuple[Holding, ...] = ()
    hints: tuple[str, ...] = ()
    reference: Evaluation | None = None
    best: int | None = None
    unwritten: tuple[Unwritten, ...] = ()
    diagnoses: tuple[Diagnosis, ...] = ()

    def diagnosis(self, version: int) -> Diagnosis | None:
        """The reading of that version's failure, or None."""
        return next((one for one in self.diagnoses if one.version == version), None)

    def attempt(self, number: int | None) -> Attempt | None:
        """The attempt of that number, or None."""
        return next((attempt for attempt in self.attempts if attempt.number == number), None)


@dataclass(frozen=True)
class Brief:
    """What a Coder writes from: the assignment, all that happened, and the advice to follow now (None at the start)."""

    assignment: Assignment
    history: History
    iteration: int
    slot: int = 0
    advice: Advice | None = None


class Ending(StrEnum):
    """How a run ends: by itself, by an order, or because the machinery failed (which says nothing of any candidate)."""

    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"


# --- what comes from outside ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Orders:
    """What people and limits say at a named point of the loop. `end` gives the reason why to stop now, else None.

    Stopping keeps the best and still judges it in full, unless `at_once`. `iterations`, `seconds` and `money_usd`
    replace the assignment's limits from here on where a person changed them; hints are new since the last reading.
    """

    end: str | None = None
    hints: tuple[str, ...] = ()
    iterations: int | None = None
    at_once: bool = False
    seconds: float | None = None
    money_usd: float | None = None


# --- the ports --------------------------------------------------------------------------------------------------


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


# --- what the loop says -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepKey:
    """The name of a step within a run: iteration, slot, role and attempt. Its text is the journal's key."""

    iteration: int
    slot: int
    role: str
    attempt: int = 0

    def __str__(self) -> str:
        return f"{self.iteration}.{self.slot}.{self.role}.{self.attempt}"


@dataclass(frozen=True)
class StepBegan:
    """An agent starts on something."""

    step: str
    agent: Agent
    iteration: int
    title: str


@dataclass(frozen=True)
class StepEnded:
    """An agent is done: what it concluded in one paragraph, its whole text, and what it took."""

    step: str
    agent: Agent
    iteration: int
    summary: str
    text: str
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class ReferenceTimed:
    """The problem's own time on this device is known."""

    evaluation: Evaluation


@dataclass(frozen=True)
class VersionKept:
    """A candidate got its evaluation and is a version now, whatever the verdict."""

    attempt: Attempt


@dataclass(frozen=True)
class VersionJudged:
    """A version got a newer evaluation. `purpose` is `real_headers`, `rival` or `final`.

    A rival's evaluation speaks of speed against another version (`rival_of`), not against the reference.
    """

    number: int
    purpose: str
    evaluation: Evaluation
    rival_of: int | None = None


@dataclass(frozen=True)
class BestChanged:
    """Another version is the best now."""

    number: int
    speedup: float


@dataclass(frozen=True)
class AdviceGiven:
    """The Conductor advises."""

    advice: Advice


@dataclass(frozen=True)
class AdviceHeld:
    """An advice was held against what happened."""

    holding: Holding


@dataclass(frozen=True)
class HintTaken:
    """A person's hint joins the next prompt."""

    text: str


@dataclass(frozen=True)
class CandidateDropped:
    """What a coder wrote or couldn't write came to no version, and why."""

    unwritten: Unwritten


@dataclass(frozen=True)
class ReplayEnded:
    """A resumed run found a step whose inputs are no longer those it was recorded with; from here all is done anew.

    The journal itself says it, before the step begins. Versions and advices from that step on are numbered again.
    """

    step: str


@dataclass(frozen=True)
class RunEnded:
    """The loop's last word. `result` is the version to use (None: the reference stays), `attempt` the best one tried.

    `outcome` is the full tier's word on the best; `speedup` is 1.0 where the reference stays.
    """

    reason: str
    result: int | None
    attempt: int | None
    outcome: Outcome | None
    speedup: float
    ending: Ending = Ending.FINISHED


Fact = (
    StepBegan
    | StepEnded
    | ReferenceTimed
    | VersionKept
    | VersionJudged
    | BestChanged
    | AdviceGiven
    | AdviceHeld
    | HintTaken
    | CandidateDropped
    | ReplayEnded
    | RunEnded
)


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
