"""Whole runs of the loop with the built-in pair, on a device that follows the cost model."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from apps.agents.builtin import BuiltinCoder, BuiltinConductor
from apps.agents.builtin.plan import Plan, plan_of
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.search import Workshop
from apps.agents.facts import AdviceGiven, AdviceHeld, CandidateDropped, Fact, RunEnded, VersionKept
from apps.agents.journal import MemoryJournal, Record
from apps.agents.loop import optimise
from apps.agents.ports import Say
from apps.agents.steps.course import Team
from apps.agents.words import Agent, Assignment, Attempt, Brief, Ending, Orders, Writing
from apps.kernels.evaluation import Evaluation, Outcome, Tier, Verdict
from apps.kernels.plain import to_plain
from tests.builtin_search.situations import assignment, evaluation, failed

REFERENCE_MS = 20.0
GBYTES_PER_S = 80.0


@dataclass
class Ears:
    facts: list[Fact] = field(default_factory=list)
    texts: list[tuple[str, Agent, str]] = field(default_factory=list)

    def fact(self, fact: Fact) -> None:
        self.facts.append(fact)

    def text(self, step: str, agent: Agent, text: str) -> None:
        self.texts.append((step, agent, text))

    def told(self, kind: type) -> list[Any]:
        return [fact for fact in self.facts if isinstance(fact, kind)]


class NoOrders:
    def read(self, point: str) -> Orders:
        return Orders()


class StandingClock:
    def now(self) -> float:
        return 0.0


class NotingCoder(BuiltinCoder):
    """The built-in coder; `plans` tells the device which plan a source came of."""

    def __init__(self, plans: dict[str, Plan]) -> None:
        self.plans = plans

    def write(self, brief: Brief, say: Say) -> Writing:
        return self._noted(super().write(brief, say))

    def repair(self, brief: Brief, failed: Attempt, say: Say) -> Writing:
        return self._noted(super().repair(brief, failed, say))

    def _noted(self, writing: Writing) -> Writing:
        attempt = Attempt(0, 0, 0, 0, None, "", writing, None, failed())
        plan = plan_of(attempt)
        assert plan is not None
        self.plans[writing.source] = plan
        return writing


@dataclass
class Device:
    """Times follow the cost model, with arithmetic slower than it thinks; moves in `broken` compute nonsense."""

    run: Assignment
    plans: dict[str, Plan]
    broken: frozenset[str] = frozenset()
    asked: int = 0

    @functools.cached_property
    def shop(self) -> Workshop:
        return Workshop(self.run)

    def evaluate(
        self, key: str, source: str, tier: Tier, *, profile: bool, say: Say, against: str | None = None, **_: object
    ) -> Evaluation:
        self.asked += 1
        if self.broken & set(self.plans[source].moves):
            return failed(Verdict.INCORRECT)
        took = self.milliseconds(source)
        judged = evaluation(
            took,
            self.profile(source, took) if profile else None,
            reference=self.milliseconds(against) if against else REFERENCE_MS,
            tier=tier,
        )
        if tier is Tier.QUICK:
            return judged
        outcome = Outcome.FASTER if (judged.speedup or 0) > 1.05 else Outcome.WITHIN_NOISE
        return replace(judged, timing=replace(judged.timing, outcome=outcome))

    def milliseconds(self, source: str) -> float:
        cost = self.shop.cost(self.plans[source].schedule)
        return (cost.overhead + 1.4 * cost.computing + cost.memory) * 1e3

    def profile(self, source: str, took: float) -> dict[str, float]:
        schedule = self.plans[source].schedule
        cost = self.shop.cost(schedule)
        share = cost.main_bytes / GBYTES_PER_S / 1e6 / took
        return {
            "share_of_roof": share, "share_of_memory_roof": share, "intensity": 0.5, "ridge": 4.0,
            "hot_loop_calls": float(cost.calls > 0.1 * cost.computing), "host_cores": 2.0, "call_us": took * 1e3,
            "hot_loop_vector_bits": float(schedule.width or 64), "host_vector_bits": 512.0,
            "parallelism": cost.threads, "hot_loop_div_sqrt": float(not schedule.reciprocals),
            "streaming_gain": 1.5, "share_of_plain_store_roof": min(1.0, 1.5 * share),
        }  # fmt: skip


@dataclass
class Done:
    ended: RunEnded
    ears: Ears
    records: tuple[Record, ...]
    device: Device

    @property
    def speeds(self) -> list[float]:
        return [fact.attempt.evaluation.speedup or 0.0 for fact in self.ears.told(VersionKept)]


def go(
    name: str,
    *,
    records: Sequence[Record] = (),
    plans: dict[str, Plan] | None = None,
    broken: frozenset[str] = frozenset(),
    **changes: Any,
) -> Done:
    run, ears = assignment(name, **changes), Ears()
    known = {} if plans is None else plans
    device, journal = Device(run, known, broken), MemoryJournal(ears, records)
    team = Team(NotingCoder(known), BuiltinConductor(), device, journal, NoOrders(), StandingClock())
    return Done(optimise(run, team), ears, journal.records, device)


@pytest.mark.parametrize("name", ["swish", "softmax", "total", "largest", "rms", "variance", "windows", "running"])
def test_a_run_gets_faster_and_knows_when_to_stop(name: str) -> None:
    done = go(name)
    assert done.ended.ending is Ending.FINISHED
    assert done.ended.outcome is Outcome.FASTER
    plain = done.device.shop.cost(Schedule())
    assert done.ended.speedup > 1.2 * REFERENCE_MS / (1e3 * (plain.overhead + 1.4 * plain.computing + plain.memory))
    assert done.ended.speedup >= done.speeds[0]
    assert len(done.speeds) <= 8
    assert done.ears.told(CandidateDropped) == []


def test_most_predictions_hold_where_the_device_is_much_like_the_model() -> None:
    held = [
        fact.holding.held for name in ("swish", "softmax", "total", "rms") for fact in go(name).ears.told(AdviceHeld)
    ]
    assert held.count(True) >= 0.5 * len(held)


def test_a_resumed_run_gives_the_same_versions_advice_and_words() -> None:
    whole = go("softmax")
    for kept in (len(whole.records) // 4, len(whole.records) // 2):
        resumed = go("softmax", records=whole.records[:kept], plans=dict(whole.device.plans))
        assert to_plain(resumed.records) == to_plain(whole.records)
        assert to_plain(resumed.ended) == to_plain(whole.ended)
        said = len(resumed.ears.texts)
        assert resumed.ears.texts == whole.ears.texts[-said:]
        assert resumed.device.asked < whole.device.asked


def test_without_a_profile_the_same_moves_come_in_the_prior_order() -> None:
    done = go("softmax", profile=False)
    assert done.ended.outcome is Outcome.FASTER
    advices = [fact.advice for fact in done.ears.told(AdviceGiven)]
    assert advices
    assert all(advice.evidence == () for advice in advices)


def test_a_move_that_breaks_the_kernel_is_left_out_of_what_follows() -> None:
    done = go("softmax", broken=frozenset({"one-pass-soft-max", "reciprocal"}))
    assert done.ended.outcome is Outcome.FASTER
    best = done.device.plans[
        next(f.attempt.writing.source for f in done.ears.told(VersionKept) if f.attempt.number == done.ended.result)
    ]
    assert not {"one-pass-soft-max", "reciprocal"} & set(best.moves)


def test_two_candidates_an_iteration_try_two_things_at_once() -> None:
    done = go("softmax", candidates=2, iterations=3)
    sources = [fact.attempt.writing.source for fact in done.ears.told(VersionKept)]
    assert len(sources) == len(set(sources))
    assert len([fact for fact in done.ears.told(VersionKept) if fact.attempt.iteration == 2]) == 2
    assert done.ended.speedup > done.speeds[0]


def test_what_can_not_be_written_is_said_and_the_run_ends() -> None:
    done = go("sorted")
    assert "aten.sort" in done.ended.reason
    assert done.ended.result is None
