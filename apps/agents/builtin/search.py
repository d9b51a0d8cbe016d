"""Which move next: what can still be tried from the best version, what it should bring, and how far that is trusted.

Pure functions of a run's history, so that a resumed run decides alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from apps.agents import profiler
from apps.agents.builtin.cost import Cost, cost_of
from apps.agents.builtin.lowering import lower
from apps.agents.builtin.moves import MOVES, Move, edits
from apps.agents.builtin.nest import Kernel
from apps.agents.builtin.plan import Plan, plan_of, step_of
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.writing import meaning_of, write_candidate
from apps.agents.memory import content
from apps.agents.words import Assignment, Attempt, Evidence, History, Holding
from apps.kernels.evaluation import Metric, Verdict

# Less than this, after trust, is not worth an iteration: the judge itself allows an outcome a margin of that size.
LEAST_GAIN = 0.02
# What a move is worth a try for where a measurement asks for it and the cost model sees nothing in it.
ASKED_RATIO = 0.96
# A move that the cost model alone favours has to promise more than one that a measurement asks for.
UNASKED_RATIO = 0.95
# What a move is said to bring that nothing speaks for; and the least time that comes as no surprise where the count sees
# little in a move.
LIKELY_NOTHING, LEAST_EXPECTED = 0.98, 0.75
# Beyond this the cost model is taken at its word that a move makes things slower.
SLOWER_RATIO = 1.03
FIRST_TRUST, MOST_TRUST = 0.8, 1.0
# What an outcome does to the trust in a move: its prediction held; it helped, but not as predicted; it did not; it failed;
# the measurements are too uncertain to say that it did not help.
HELD, HELPED, REFUTED, FAILED, UNCERTAIN = 1.25, 0.85, 0.35, 0.25, 0.7
# Further from its roof than this, a kernel is worth tries that nothing speaks for and nothing speaks against.
FAR_FROM_ROOF = 0.7
ROOF_REACHED = 0.9
PEAK_REACHED = 0.7


@dataclass(frozen=True)
class Proposal:
    """A move on a version's schedule with what it should do to the time: new over old, and the range around it."""

    move: Move
    schedule: Schedule
    ratio: float
    low: float
    high: float
    modelled: float
    trust: float
    evidence: tuple[Evidence, ...]
    before: Cost
    after: Cost

    @property
    def speculative(self) -> bool:
        """Whether nothing speaks for it, neither a measurement nor the count."""
        return not self.evidence and self.modelled > UNASKED_RATIO

    @property
    def gain(self) -> float:
        """Share of the time that is expected to go, weighed by trust."""
        return (1.0 - self.ratio) * self.trust


class Workshop:
    """One problem on one host: kernels, sources and costs by schedule, each made once."""

    def __init__(self, assignment: Assignment) -> None:
        self.facts, self.host = assignment.facts, assignment.host
        self.meaning = meaning_of(assignment.facts, assignment.policy)
        self._sources: dict[Schedule, str] = {}

    def kernel(self, schedule: Schedule) -> Kernel:
        """The loops under a schedule."""
        return lower(self.meaning, schedule)

    def source(self, schedule: Schedule) -> str:
        """The candidate under a schedule. Raises `CannotWrite`."""
        if schedule not in self._sources:
            self._sources[schedule] = write_candidate(self.facts, self.host, schedule)
        return self._sources[schedule]

    def cost(self, schedule: Schedule) -> Cost:
        """What a call should take under a schedule."""
        return cost_of(self.kernel(schedule), schedule, self.host)


class Search:
    """What a run's history leaves to be tried."""

    def __init__(self, assignment: Assignment, history: History) -> None:
        self.assignment = assignment
        self.history = history
        self.shop = Workshop(assignment)
        self.tried = {content(attempt.writing.source) for attempt in history.attempts}
        for advice in history.advices:
            step = step_of(advice)
            if step is not None:
                self.tried.add(content(self.shop.source(step.plan.schedule)))

    @property
    def best(self) -> Attempt | None:
        """The best version so far."""
        return self.history.attempt(self.history.best)

    @property
    def plan(self) -> Plan | None:
        """The best version's plan; None where there is none, or another author wrote it."""
        return plan_of(self.best)

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """What was measured of the best version; no profile, no more than its time."""
        return profiler.metrics(self.best.evaluation) if self.best is not None else {}

    def value(self, name: str) -> float | None:
        """A metric of the best version."""
        found = self.metrics.get(name)
        return found.value if found is not None else None

    def is_new(self, schedule: Schedule) -> bool:
        """Whether a schedule gives a candidate that was not written or advised before."""
        return content(self.shop.source(schedule)) not in self.tried

    def untried(self, schedule: Schedule) -> list[tuple[Move, Schedule]]:
        """Moves that give something new from here, in the prior order. Several that give the same count once."""
        seen: set[str] = set()
        found = []
        for move, after in edits(schedule, self.assignment.host):
            text = content(self.shop.source(after))
            if text not in self.tried and text not in seen and self._matters(move, schedule, after):
                seen.add(text)
                found.append((move, after))
        return found

    def _matters(self, move: Move, before: Schedule, after: Schedule) -> bool:
        """Whether the choice that a move is about changes the code, and not only what follows from it."""
        without = after.having(**{move.field: getattr(before, move.field)})
        return self.shop.source(without) != self.shop.source(after)

    def proposals(self) -> list[Proposal]:
        """All moves from the best version that change its code and were not tried, the one to try first in front.

        With a profile: those that a measurement asks for by gain times trust, then those that the cost model alone favours,
        then those that a measurement alone asks for, and, far from the roof, those that may do no harm. Without a profile:
        the prior order as it is.
        """
        plan = self.plan
        if plan is None:
            return []
        all_of_them = [self._proposal(plan, move, after) for move, after in self.untried(plan.schedule)]
        if not self.profiled:
            return all_of_them
        worth = [p for p in all_of_them if p.gain >= LEAST_GAIN]
        asked = [p for p in worth if p.evidence and p.modelled <= SLOWER_RATIO]
        others = [p for p in worth if not p.evidence and p.modelled <= UNASKED_RATIO]
        agreed = [p for p in asked if p.modelled <= ASKED_RATIO]
        measured = [p for p in asked if p.modelled > ASKED_RATIO]
        return _by_gain(agreed) + _by_gain(others) + _by_gain(measured) + self._open(all_of_them)

    def _open(self, proposals: list[Proposal]) -> list[Proposal]:
        """Moves that neither a measurement nor the count favours, in the prior order, while much time is unexplained."""
        share = self.value("share_of_roof")
        if share is not None and share >= FAR_FROM_ROOF:
            return []
        return [
            replace(one, ratio=max(LIKELY_NOTHING, min(1.0, one.modelled)), low=LEAST_EXPECTED, high=1.0)
            for one in proposals
            if not one.evidence and UNASKED_RATIO < one.modelled <= SLOWER_RATIO and one.trust >= FIRST_TRUST
        ]

    @property
    def profiled(self) -> bool:
        """Whether the best version's profile is known."""
        return self.best is not None and bool(self.best.evaluation.profile.metrics)

    def at_the_roof(self) -> Evidence | None:
        """The ceiling that the best version has reached, as a profile shows it."""
        intensity, ridge = self.value("intensity"), self.value("ridge")
        memory_decides = intensity is None or ridge is None or intensity < ridge
        for name, least, decides in (
            ("share_of_memory_roof", ROOF_REACHED, memory_decides),
            ("share_of_arithmetic_peak", PEAK_REACHED, True),
        ):
            share = self.value(name)
            if share is not None and share >= least and decides:
                return Evidence(name, share, "share", ">", least)
        return None

    def trust(self, move: str) -> float:
        """How far predictions for a move are believed: less by each that was refuted, more by each that held."""
        trust = FIRST_TRUST
        for advice in self.history.advices:
            step = step_of(advice)
            if step is not None and step.name == move:
                trust *= self._outcome(advice.number)
        for attempt in self.history.attempts:  # tried without an advice: by a repair, or beside a first version
            plan = plan_of(attempt)
            own = attempt.advice is None or attempt.repair > 0
            if own and plan is not None and plan.moves[-1:] == (move,) and _failed(attempt):
                trust *= FAILED
        return min(MOST_TRUST, trust)

    def _outcome(self, advice: int) -> float:
        followed = [a for a in self.history.attempts if a.advice == advice and a.repair == 0]
        if any(_failed(attempt) for attempt in followed):
            return FAILED
        holding = next((one for one in self.history.holdings if one.advice == advice), None)
        if holding is None or holding.held is None:
            return 1.0
        if holding.held:
            return HELD
        if helped(holding):
            return HELPED
        return REFUTED if self.clearly_no_faster(holding) else UNCERTAIN

    def clearly_no_faster(self, holding: Holding) -> bool:
        """Whether the intervals of the two versions' speed-ups leave no room for a gain worth having."""
        advice = next((one for one in self.history.advices if one.number == holding.advice), None)
        followed, base = self.history.attempt(holding.version), self.history.attempt(advice.base if advice else None)
        after = followed.evaluation.timing.speedup if followed is not None else None
        before = base.evaluation.timing.speedup if base is not None else None
        if after is None or before is None:
            return True
        return after.ci95[1] < before.ci95[0] * (1 + LEAST_GAIN)

    def _proposal(self, plan: Plan, move: Move, after: Schedule) -> Proposal:
        costs = self.shop.cost(plan.schedule), self.shop.cost(after)
        seconds = self._measured()
        if seconds is not None:
            scale = costs[0].scaled_to(seconds, computing=self._loop_decides())
            costs = costs[0].scaled(scale), costs[1].scaled(scale)
        evidence = move.evidence(self.metrics)
        modelled = max(costs[1].seconds / costs[0].seconds, 0.95 * min(1.0, self.value("share_of_roof") or 0.0))
        ratio = min(modelled, ASKED_RATIO) if evidence or not self.profiled else modelled
        low, high = span(ratio)
        if modelled > ratio:
            low = LEAST_EXPECTED
        return Proposal(move, after, ratio, low, high, modelled, self.trust(move.name), evidence, *costs)

    def _measured(self) -> float | None:
        time = self.best.evaluation.timing.candidate if self.best is not None else None
        return time.median_ms / 1e3 if time is not None else None

    def _loop_decides(self) -> bool:
        """Whether the profile blames what the loop does, so that time beyond the prediction is the loop's."""
        if (self.value("share_of_memory_roof") or 0.0) >= 0.8:
            return False
        return any(move.arithmetic and move.effect is not None and move.evidence(self.metrics) for move in MOVES)


def span(ratio: float) -> tuple[float, float]:
    """The range that a prediction has to come out in: from half as much again to a third of the gain, by ratio."""
    return round(0.95 * ratio**1.6, 4), round(min(0.99, ratio**0.35), 4)


def helped(holding: Holding) -> bool:
    """Whether the version that followed an advice is faster, whatever was predicted."""
    return any(one.metric == profiler.TIME_OVER_REFERENCE and one.after < 0.99 * one.before for one in holding.happened)


def _failed(attempt: Attempt) -> bool:
    return attempt.evaluation.verdict is not Verdict.CORRECT


def _by_gain(proposals: list[Proposal]) -> list[Proposal]:
    return sorted(proposals, key=lambda one: -one.gain)
