"""Each finding asks for the move that answers it, and the advice carries the finding as its evidence."""

from __future__ import annotations

import pytest

from apps.agents import profiler
from apps.agents.builtin import BuiltinConductor
from apps.agents.builtin.plan import Plan, step_of
from apps.agents.builtin.schedule import Schedule
from apps.agents.words import Advice, History, NothingToGain
from tests.builtin_search.situations import after, assignment, quiet, version

VECTORS = Schedule(width=512, polynomials=True)
KEEPING = VECTORS.having(keep=True)
MEMORY = {"intensity": 0.5, "ridge": 4.0}

CASES = [
    ("swish", Schedule(), {"hot_loop_calls": 1.0, "hot_loop_vector_bits": 64.0}, "in-line-functions"),
    ("swish", Schedule(), {"math_library_share": 0.7}, "in-line-functions"),
    ("largest", Schedule(), {"hot_loop_vector_bits": 64.0}, "vectors"),
    ("total", VECTORS, {"parallelism": 1.0, "host_cores": 2.0, "call_us": 900.0}, "split-fold"),
    ("rows", VECTORS, {"latency_chain_ratio": 4.0, "share_of_roof": 0.3}, "accumulators"),
    ("softmax", KEEPING, {"hot_loop_div_sqrt": 1.0, "share_of_memory_roof": 0.4}, "reciprocal"),
    ("softmax", VECTORS, {"share_of_memory_roof": 0.4}, "keep-in-buffer"),
    ("softmax", KEEPING.having(reciprocals=True), {"share_of_memory_roof": 0.4}, "next-row-ahead"),
    ("variance", VECTORS.having(ahead=True), {"share_of_memory_roof": 0.45, **MEMORY}, "one-pass-moments"),
    ("rms", VECTORS, {"share_of_memory_roof": 0.3, **MEMORY}, "larger-tile"),
    ("relu", VECTORS, {"share_of_plain_store_roof": 0.9, "streaming_gain": 1.5, "share_of_memory_roof": 0.6, **MEMORY},
     "streaming-stores"),
]  # fmt: skip


def advised(name: str, schedule: Schedule, found: dict[str, float]) -> Advice:
    run = assignment(name)
    answer = BuiltinConductor().advise(run, after(run, Plan(schedule), found), quiet)
    assert isinstance(answer, Advice), answer
    return answer


@pytest.mark.parametrize(("name", "schedule", "found", "move"), CASES)
def test_a_planted_finding_leads_to_its_move(name: str, schedule: Schedule, found: dict[str, float], move: str) -> None:
    answer = advised(name, schedule, found)
    step = step_of(answer)
    assert step is not None
    assert step.name == move
    assert step.plan.moves == (move,)
    assert step.plan.schedule != schedule


@pytest.mark.parametrize(("name", "schedule", "found", "move"), CASES)
def test_evidence_is_what_was_measured_and_crosses_its_threshold(
    name: str, schedule: Schedule, found: dict[str, float], move: str
) -> None:
    answer = advised(name, schedule, found)
    assert answer.evidence
    for one in answer.evidence:
        assert found[one.metric] == one.value
        assert one.value > one.threshold if one.relation == ">" else one.value < one.threshold


@pytest.mark.parametrize(("name", "schedule", "found", "move"), CASES)
def test_a_prediction_says_what_should_become_of_the_time_and_within_what_range(
    name: str, schedule: Schedule, found: dict[str, float], move: str
) -> None:
    first, *others = advised(name, schedule, found).expected
    assert first.metric == profiler.TIME_OVER_REFERENCE
    assert 0 < first.low < first.ratio <= first.high < 1
    assert all(one.metric in found and one.low <= one.ratio <= one.high for one in others)


def test_a_finding_that_no_move_answers_here_asks_for_nothing() -> None:
    """Nothing in ReLU calls a library: the move would not change the code."""
    run = assignment("relu")
    streaming = Plan(VECTORS.having(streaming=True))
    found = {"math_library_share": 0.9, "share_of_roof": 0.85}
    assert isinstance(BuiltinConductor().advise(run, after(run, streaming, found), quiet), NothingToGain)


def test_what_a_measurement_and_the_count_agree_on_comes_before_what_only_the_count_favours() -> None:
    """For a fold of few results on plain vectors the count favours accumulators; idle cores were measured."""
    found = {"parallelism": 1.0, "host_cores": 2.0, "call_us": 900.0, "share_of_roof": 0.2}
    agreed, by_count = (
        step_of(advised("total", VECTORS, found)),
        step_of(advised("total", VECTORS, {"share_of_roof": 0.2})),
    )
    assert agreed is not None
    assert by_count is not None
    assert agreed.name == "split-fold"
    assert agreed.plan.schedule.accumulators == 1
    assert by_count.name == "split-fold"  # the largest gain of all, with or without being asked for


def test_a_large_gain_by_the_count_comes_before_what_a_measurement_alone_asks_for() -> None:
    asked = step_of(advised("swish", Schedule(), {"hot_loop_vector_bits": 64.0, "share_of_memory_roof": 0.1}))
    assert asked is not None
    assert asked.name == "in-line-functions"


def test_the_reasoning_names_the_real_numbers_and_is_said_sentence_by_sentence() -> None:
    run, said = assignment("swish"), list[str]()
    history = after(run, Plan(Schedule()), {"hot_loop_calls": 3.0, "math_library_share": 0.61}, milliseconds=6.25)
    answer = BuiltinConductor().advise(run, history, said.append)
    assert isinstance(answer, Advice)
    assert "".join(said).strip() == answer.reasoning
    assert len(said) >= 5
    for number in ("6.25 ms", "10 ms", "1.60x", "hot loop calls is 3"):
        assert number in answer.reasoning


def test_the_roof_is_an_answer() -> None:
    run = assignment("relu")
    found = {"share_of_memory_roof": 0.93, "streaming_gain": 1.5, **MEMORY}
    answer = BuiltinConductor().advise(run, after(run, Plan(VECTORS), found), quiet)
    assert isinstance(answer, NothingToGain)
    assert "93%" in answer.reason


def test_no_version_no_advice() -> None:
    assert isinstance(BuiltinConductor().advise(assignment("relu"), History(), quiet), NothingToGain)


def test_another_authors_version_is_not_edited_but_answered_by_an_own_one() -> None:
    from dataclasses import replace

    run = assignment("swish")
    history = after(run, Plan(Schedule()), {"share_of_roof": 0.3})
    foreign = replace(history.attempts[0], writing=replace(history.attempts[0].writing, source="another", plan=None))
    answer = BuiltinConductor().advise(run, replace(history, attempts=(foreign,)), quiet)
    assert isinstance(answer, Advice)
    step = step_of(answer)
    assert step is not None
    own = version(run, 2, step.plan, foreign.evaluation)
    both = replace(history, attempts=(foreign, own), advices=(answer,))
    assert isinstance(BuiltinConductor().advise(run, both, quiet), NothingToGain)


def test_what_needs_vectors_brings_them() -> None:
    step = step_of(advised("relu", Schedule(), {"streaming_gain": 1.5, "share_of_memory_roof": 0.6, **MEMORY}))
    assert step is not None
    assert step.name == "streaming-stores"
    assert step.plan.schedule == Schedule(streaming=True, width=512, resident=32 << 20)
