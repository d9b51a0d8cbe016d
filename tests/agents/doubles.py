"""Doubles of the loop's ports: a coder, a device and people that follow a script.

A source says what becomes of it: "correct 1.5" is judged correct and 1.5 times as fast, "rejected", "incorrect" and the
other verdicts fail with that verdict, "lost" is a device that can't judge, "stopped" a judgement that is interrupted.
What follows a `#` makes two sources of one kind differ. In a world of their own the doubles count what was asked of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from apps.agents.facts import Fact, HintTaken, RunEnded
from apps.agents.journal import MemoryJournal, Record
from apps.agents.loop import optimise
from apps.agents.ports import JudgingFailed, Say, Stopped
from apps.agents.steps.course import Team
from apps.agents.words import (
    Advice,
    Agent,
    Assignment,
    Attempt,
    Brief,
    Evidence,
    History,
    NothingToGain,
    Orders,
    Prediction,
    Usage,
    Writing,
)
from apps.kernels.evaluation import (
    Bottleneck,
    Build,
    Correctness,
    Evaluation,
    Metric,
    Outcome,
    Policy,
    Profile,
    Rejection,
    SpeedUp,
    Tier,
    Time,
    Timing,
    Trial,
    Verdict,
)
from apps.kernels.facts import ProblemFacts
from apps.kernels.machine import Ceilings, HostReport

Answer = str | Exception
SPREAD = 0.02  # half of a scripted 95% interval, relative


def a_host() -> HostReport:
    return HostReport(
        cpu_model="Scripted",
        cores=2,
        vector_bits=512,
        memory_bytes=1 << 33,
        caches=(),
        devices=(),
        toolchains={},
        torch=None,
        ceilings=Ceilings(),
        isolation=(),
        isolation_level="full",
        counters=False,
        counters_detail="no counters here",
    )


def an_assignment(**changes: object) -> Assignment:
    start = Assignment(problem="class Model: ...", facts=ProblemFacts(), host=a_host(), iterations=3)
    return replace(start, **changes)  # type: ignore[arg-type]


def an_evaluation(
    source: str, tier: Tier = Tier.QUICK, *, profile: bool = True, against: str | None = None
) -> Evaluation:
    """What the scripted device finds of a source."""
    words = source.split("#")[0].split()
    verdict = Verdict(words[0])
    if verdict is not Verdict.CORRECT:
        return Evaluation(
            verdict,
            Policy.LIBRARY,
            tier,
            detail=f"{verdict} it is",
            rejections=(Rejection("calls-torch", "line 3", "torch.tanh does the work"),)
            if "rejected" in source
            else (),
            build=Build(0.1, "k.cpp:3:5: error: 'x' was not declared" if verdict is Verdict.BUILD_FAILED else ""),
            correctness=Correctness(1, 0, 2.0, 0.1, (Trial("values", "1", (4,), "float32", False, 2.0, 0.1),)),
            seconds=0.5,
        )
    speed = float(words[1]) / (float(against.split()[1]) if against else 1.0)
    return Evaluation(
        verdict,
        Policy.LIBRARY,
        tier,
        correctness=Correctness(3, 3, 0.001, 0.01),
        timing=Timing(
            reference=Time(1.0, (0.98, 1.02)),
            candidate=Time(1.0 / speed, (0.98 / speed, 1.02 / speed)),
            speedup=SpeedUp(speed, (speed * (1 - SPREAD), speed * (1 + SPREAD)), margin=0.01),
            outcome=_outcome(speed) if tier is Tier.FULL else None,
        ),
        profile=_profile(speed) if profile else Profile(),
        seconds=1.0,
    )


def _outcome(speed: float) -> Outcome:
    if abs(speed - 1.0) <= 0.03:
        return Outcome.WITHIN_NOISE
    return Outcome.FASTER if speed > 1.0 else Outcome.SLOWER


def _profile(speed: float) -> Profile:
    return Profile(
        tier="software",
        metrics=(Metric("minor_faults", 200.0 / speed, "faults", "rusage"),),
        bottleneck=Bottleneck(
            "page faults", "minor_faults", 200.0 / speed, 100.0, "Pages are touched for the first time."
        ),
    )


@dataclass
class World:
    """What outlives a worker: the script, people's orders, the facts that were told, and the count of all work."""

    writes: dict[tuple[int, int], Answer]
    repairs: dict[tuple[int, int, int], Answer] = field(default_factory=dict)
    advise: Callable[[History], Advice | NothingToGain] | None = None
    orders: dict[str, list[Orders]] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)
    full: dict[str, str] = field(default_factory=dict)  # what a source turns out to be in full
    real_headers: dict[str, str] = field(default_factory=dict)  # what a source turns out to be with real headers
    rivals: dict[str, str] = field(default_factory=dict)  # how fast a source turns out to be in a duel
    lost_once: set[str] = field(default_factory=set)
    tick: float = 1.0
    pause: float = 0.0  # seconds that each reading of orders waits
    now: float = 0.0
    facts: list[Fact] = field(default_factory=list)
    texts: list[tuple[str, Agent, str]] = field(default_factory=list)
    work: list[str] = field(default_factory=list)
    briefs: list[Brief] = field(default_factory=list)
    seen: list[History] = field(default_factory=list)

    def run(self, assignment: Assignment | None = None, journal: MemoryJournal | None = None) -> RunEnded:
        return optimise(assignment or an_assignment(), self.team(journal or MemoryJournal(self.listener())))

    def team(self, journal: MemoryJournal) -> Team:
        return Team(
            ScriptedCoder(self), ScriptedConductor(self), ScriptedDevice(self), journal, People(self), Watch(self)
        )

    def listener(self) -> Ears:
        return Ears(self)

    def told(self, kind: type) -> list[Fact]:
        return [fact for fact in self.facts if isinstance(fact, kind)]


@dataclass
class Ears:
    world: World

    def fact(self, fact: Fact) -> None:
        self.world.facts.append(fact)
        if isinstance(fact, HintTaken):  # as the recorder does: in the transaction that journals the reading
            self.world.hints.remove(fact.text)

    def text(self, step: str, agent: Agent, text: str) -> None:
        self.world.texts.append((step, agent, text))


@dataclass
class ScriptedCoder:
    world: World
    name: str = "scripted"
    at_once: int = 1

    def write(self, brief: Brief, say: Say) -> Writing:
        self.world.briefs.append(brief)
        return self._answer(
            f"write {brief.iteration}.{brief.slot}", self.world.writes[brief.iteration, brief.slot], say
        )

    def repair(self, brief: Brief, failed: Attempt, say: Say) -> Writing:
        self.world.briefs.append(brief)
        place = (failed.iteration, failed.slot, failed.repair + 1)
        return self._answer(f"repair {place}", self.world.repairs[place], say)

    def _answer(self, work: str, answer: Answer, say: Say) -> Writing:
        self.world.work.append(work)
        say("thinking ")
        if isinstance(answer, Exception):
            raise answer
        return Writing(answer, f"Wrote {answer}.", "thinking it over", {"plan": (1, 2)}, Usage(0.1, "m", 10, 5, 0.25))


@dataclass
class ScriptedConductor:
    world: World

    def advise(self, assignment: Assignment, history: History, say: Say) -> Advice | NothingToGain:
        self.world.work.append("advise")
        self.world.seen.append(history)
        return self.world.advise(history) if self.world.advise else an_advice(history)


def an_advice(history: History, metric: str = "time_over_reference") -> Advice:
    return Advice(
        number=0,
        base=history.best or 0,
        bottleneck="page faults",
        evidence=(Evidence("minor_faults", 200.0, "1", ">", 100.0),),
        change="Allocate less.",
        expected=(Prediction(metric, 0.8, 0.6, 0.95),),
        reasoning="Because.",
    )


@dataclass
class ScriptedDevice:
    world: World

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
    ) -> Evaluation:
        self.world.work.append(f"evaluate {key}")
        if source in self.world.lost_once and "-again" not in key:
            raise JudgingFailed("the device went away")
        if source.startswith("lost"):
            raise JudgingFailed("the host is lost; start its station again")
        if source.startswith("stopped") and not finishing:
            raise Stopped("Stopped by Ann.", at_once="at once" in source)
        found = self.world.real_headers.get(source, source) if real_headers else source
        found = self.world.full.get(source, found) if tier is Tier.FULL else found
        found = self.world.rivals.get(source, found) if against else found
        if found == "stopped" and not finishing:
            raise Stopped("Stopped by Ann.")
        if found == "stopped":
            found = source
        if found == "lost":
            raise JudgingFailed("the host is lost; start its station again")
        if found == "stop at once":
            raise Stopped("Ended by Ann.", at_once=True)
        say(f"judging {tier}\n")
        return an_evaluation(found, tier, profile=profile, against=against)


@dataclass
class People:
    world: World

    def read(self, point: str) -> Orders:
        self.world.now += self.world.pause
        waiting = self.world.orders.get(point, [])
        orders = waiting.pop(0) if waiting else Orders()
        return replace(orders, hints=(*orders.hints, *self.world.hints))


@dataclass
class Watch:
    world: World

    def now(self) -> float:
        self.world.now += self.world.tick
        return self.world.now


class Killed(BaseException):
    """The worker died here."""


class MortalJournal(MemoryJournal):
    """A journal whose worker dies at its n-th commit, with the step recorded or just before it would have been."""

    def __init__(self, listener: Ears, records: Sequence[Record], dies_at: int, *, recorded: bool) -> None:
        super().__init__(listener, records)
        self._left = dies_at
        self._recorded = recorded

    def commit(self, record: Record, facts: Sequence[Fact]) -> None:
        self._left -= 1
        if self._left < 0 and not self._recorded:
            raise Killed
        super().commit(record, facts)
        if self._left < 0:
            raise Killed
