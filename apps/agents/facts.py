"""What the loop says of itself: frozen facts in the order in which they happen. All of them are plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

from apps.agents.words import Advice, Agent, Attempt, Ending, Holding, Unwritten, Usage
from apps.kernels.evaluation import Evaluation, Outcome


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
