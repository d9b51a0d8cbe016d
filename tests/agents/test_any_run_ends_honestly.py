"""Whatever coder, device and people do: a run ends once, claims only what was proven, and survives its worker's death."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.agents.facts import BestChanged, Fact, RunEnded, StepBegan, StepEnded, VersionJudged, VersionKept
from apps.agents.journal import MemoryJournal
from apps.agents.ports import Stopped
from apps.agents.words import Assignment, CannotWrite, Orders
from apps.kernels.evaluation import Outcome, Tier, Verdict
from tests.agents.doubles import Answer, Killed, MortalJournal, World, an_assignment

SLOTS, ITERATIONS, REPAIRS = 2, 3, 1
ANSWERS: st.SearchStrategy[Answer] = st.one_of(
    st.sampled_from(["incorrect", "build_failed", "rejected", "stopped", "stopped at once", "lost", "correct 1.0"]),
    st.sampled_from(["correct 1.20", "correct 1.21", "correct 2.0", "correct 2.5 # load_inline", "correct 0.5"]),
    st.builds(CannotWrite, st.just("no such operation")),
    st.builds(Stopped, st.just("Stopped by Ann.")),
)
FINDINGS = st.dictionaries(
    st.sampled_from(["correct 1.21", "correct 2.0", "correct 2.5 # load_inline"]),
    st.sampled_from(["rejected", "correct 1.0", "correct 1.5", "lost", "stop at once"]),
)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    writes = {(i, s): draw(ANSWERS) for i in range(1, ITERATIONS + 1) for s in range(SLOTS)}
    repairs = {(i, s, r): draw(ANSWERS) for (i, s) in writes for r in range(1, REPAIRS + 1)}
    stop_at = draw(st.none() | st.integers(0, 3))
    orders = [Orders()] * stop_at + [Orders(end="Stopped by Ann.")] if stop_at is not None else []
    return World(
        writes,
        repairs,
        orders={"write": orders},
        full=draw(FINDINGS),
        real_headers=draw(FINDINGS),
        rivals=draw(FINDINGS),
    )


def again(world: World) -> World:
    return World(
        world.writes,
        world.repairs,
        orders={point: list(orders) for point, orders in world.orders.items()},
        full=world.full,
        real_headers=world.real_headers,
        rivals=world.rivals,
    )


def assignment() -> Assignment:
    return an_assignment(iterations=ITERATIONS, candidates=SLOTS, repairs=REPAIRS)


@settings(max_examples=150, deadline=None)
@given(worlds())
def test_a_run_ends_once_and_claims_only_what_was_proven(world: World) -> None:
    ended = world.run(assignment())
    assert world.told(RunEnded) == [ended] and world.facts[-1] == ended
    numbers = [fact.attempt.number for fact in world.told(VersionKept)]
    assert numbers == list(range(1, len(numbers) + 1))
    began = [fact.step for fact in world.told(StepBegan)]
    assert began == [fact.step for fact in world.told(StepEnded)] and len(set(began)) == len(began)
    correct = {f.attempt.number for f in world.told(VersionKept) if f.attempt.evaluation.verdict is Verdict.CORRECT}
    assert {fact.number for fact in world.told(BestChanged)} <= correct
    finals = [fact for fact in world.told(VersionJudged) if fact.purpose == "final"]
    if ended.result is None:
        assert ended.speedup == 1.0
    else:
        last = finals[-1]
        assert last.number == ended.result and last.evaluation.tier is Tier.FULL
        assert last.evaluation.timing.outcome is Outcome.FASTER and last.evaluation.speedup == ended.speedup


@settings(max_examples=150, deadline=None)
@given(worlds(), st.data())
def test_a_worker_dies_anywhere_in_any_run(world: World, data: st.DataObject) -> None:
    second = again(world)
    ended = world.run(assignment(), whole := MemoryJournal(world.listener()))
    dies_at = data.draw(st.integers(0, len(whole.records) - 1))
    mortal = MortalJournal(second.listener(), (), dies_at, recorded=True)
    with pytest.raises(Killed):
        second.run(assignment(), mortal)
    assert second.run(assignment(), MemoryJournal(second.listener(), mortal.records)) == ended
    facts: list[Fact] = second.facts
    assert facts == world.facts
    assert second.work == world.work
