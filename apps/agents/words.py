"""What is asked of a run, what its agents write, and what a history holds: frozen words of the loop.

Everything here is plain data (`apps.kernels.plain`), because all of it is journalled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from apps.kernels.evaluation import Evaluation, EvaluationRequest, Language, Policy, Tier
from apps.kernels.facts import ProblemFacts
from apps.kernels.machine import HostReport
from apps.kernels.plain import Plain


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
