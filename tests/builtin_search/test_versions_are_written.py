"""What the coder writes: plain loops and what they plainly need, then one change at a time; other ways on a failure."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.agents.builtin import BuiltinCoder, BuiltinConductor
from apps.agents.builtin.plan import Plan, plan_of, step_of
from apps.agents.builtin.schedule import Schedule
from apps.agents.conductor import without_profile
from apps.agents.words import Advice, Brief, CannotWrite, History, Writing
from apps.kernels.evaluation import Verdict
from tests.builtin_search.situations import after, assignment, failed, quiet, version

FOUND = {"hot_loop_calls": 1.0, "hot_loop_vector_bits": 64.0, "share_of_roof": 0.2}


def plan(writing: Writing) -> Plan:
    found = plan_of(version_like(writing))
    assert found is not None
    return found


def version_like(writing: Writing):  # type: ignore[no-untyped-def]
    run = assignment("swish")
    return replace(version(run, 1, Plan(Schedule()), failed()), writing=writing)


def test_the_first_version_is_plain_loops_on_all_cores() -> None:
    said: list[str] = []
    writing = BuiltinCoder().write(Brief(assignment("relu"), History(), 1), said.append)
    assert plan(writing) == Plan(Schedule())
    assert "omp parallel for" in writing.source
    assert "ModelNew" in writing.source
    assert "".join(said).strip() == writing.reasoning
    assert len(said) > 3


def test_calls_in_the_loop_and_idle_cores_are_seen_to_in_the_first_version() -> None:
    swish = BuiltinCoder().write(Brief(assignment("swish"), History(), 1), quiet)
    assert plan(swish).moves[0] == "in-line-functions"
    assert "std::exp" not in swish.source
    assert "polynomials" in swish.reasoning
    assert plan(BuiltinCoder().write(Brief(assignment("total"), History(), 1), quiet)).schedule.split > 0
    assert plan(BuiltinCoder().write(Brief(assignment("largest"), History(), 1), quiet)).schedule.width == 512


def test_what_is_not_plain_to_see_is_left_to_the_profile() -> None:
    for name in ("swish", "softmax", "variance", "rms"):
        first = plan(BuiltinCoder().write(Brief(assignment(name), History(), 1), quiet)).schedule
        assert not (first.streaming or first.online or first.moments or first.keep or first.reciprocals)


def test_first_versions_of_several_slots_differ() -> None:
    run = assignment("swish")
    sources = [BuiltinCoder().write(Brief(run, History(), 1, slot), quiet).source for slot in range(3)]
    assert len(set(sources)) == 3


def test_advice_is_followed_to_the_letter() -> None:
    run = assignment("swish")
    history = after(run, Plan(Schedule()), FOUND)
    advice = BuiltinConductor().advise(run, history, quiet)
    assert isinstance(advice, Advice)
    step = step_of(advice)
    assert step is not None
    writing = BuiltinCoder().write(Brief(run, history, 2, 0, advice), quiet)
    assert plan(writing) == step.plan
    assert "std::exp" not in writing.source
    assert "v1" in writing.summary


def test_advice_without_a_move_is_answered_with_the_best_own_one() -> None:
    run = assignment("swish")
    history = after(run, Plan(Schedule()), FOUND)
    advice = replace(BuiltinConductor().advise(run, history, quiet), move="be faster")  # type: ignore[type-var]
    assert isinstance(advice, Advice)
    assert plan(BuiltinCoder().write(Brief(run, history, 2, 0, advice), quiet)).moves == ("in-line-functions",)


def test_a_repair_leaves_the_failed_move_out() -> None:
    run = assignment("swish")
    history = after(run, Plan(Schedule()), FOUND)
    advice = BuiltinConductor().advise(run, history, quiet)
    step = step_of(advice) if isinstance(advice, Advice) else None
    assert isinstance(advice, Advice)
    assert step is not None
    broken = version(run, 2, step.plan, failed(Verdict.INCORRECT), advice=1)
    history = replace(history, attempts=(*history.attempts, broken), advices=(replace(advice, number=1),))
    repaired = plan(BuiltinCoder().repair(Brief(run, history, 2, 0, advice), broken, quiet))
    assert step.name not in repaired.moves
    assert repaired.schedule not in (step.plan.schedule, Schedule())


def test_a_first_version_that_fails_is_followed_by_other_ways_until_none_is_left() -> None:
    run, history, sources = assignment("relu"), History(), set[str]()
    writing = BuiltinCoder().write(Brief(run, history, 1), quiet)
    for number in range(1, 40):
        assert writing.source not in sources
        sources.add(writing.source)
        attempt = replace(version(run, number, plan(writing), failed()), iteration=1)
        history = replace(history, attempts=(*history.attempts, attempt))
        try:
            writing = BuiltinCoder().repair(Brief(run, history, 1), attempt, quiet)
        except CannotWrite as end:
            assert "no other" in str(end)
            break
    assert len(sources) > 2


def test_an_operation_without_a_form_is_named() -> None:
    with pytest.raises(CannotWrite, match=r"aten\.sort"):
        BuiltinCoder().write(Brief(assignment("sorted"), History(), 1), quiet)


def test_without_a_profile_moves_come_in_their_fixed_order() -> None:
    run = assignment("softmax", profile=False)
    start = after(run, Plan(Schedule()), {"hot_loop_div_sqrt": 9.0, "share_of_memory_roof": 0.99})
    advice = BuiltinConductor().advise(run, without_profile(start), quiet)
    assert isinstance(advice, Advice)
    step = step_of(advice)
    assert step is not None
    assert step.name == "in-line-functions"
    assert advice.evidence == ()
    assert "no profile" in advice.reasoning
