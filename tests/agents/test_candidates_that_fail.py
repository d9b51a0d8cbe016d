"""What fails is repaired a bounded number of times, kept with its reason, and never returned."""

from __future__ import annotations

import pytest

from apps.agents.facts import CandidateDropped, StepEnded, VersionKept
from apps.agents.memory import failures
from apps.agents.words import CannotWrite, Ending, Seed
from apps.kernels.evaluation import Outcome, Verdict
from apps.kernels.facts import ProblemFacts
from tests.agents.doubles import World, an_assignment


def test_a_repair_mends_what_did_not_build() -> None:
    world = World({(1, 0): "build_failed"}, repairs={(1, 0, 1): "correct 1.5"})
    ended = world.run(an_assignment(iterations=1))
    first, second = (fact.attempt for fact in world.told(VersionKept))
    assert (second.parent, second.repair, second.slot) == (first.number, 1, 0)
    assert ended.result == 2


def test_repairs_are_bounded() -> None:
    world = World(
        {(1, 0): "build_failed", (2, 0): "correct 1.2"},
        repairs={(1, 0, 1): "crashed", (1, 0, 2): "incorrect", (1, 0, 3): "correct 9"},
    )
    ended = world.run(an_assignment(iterations=2, repairs=2))
    verdicts = [fact.attempt.evaluation.verdict for fact in world.told(VersionKept)]
    assert verdicts == [Verdict.BUILD_FAILED, Verdict.CRASHED, Verdict.INCORRECT, Verdict.CORRECT]
    assert ended.result == 4


@pytest.mark.parametrize("answer", ["build_failed", CannotWrite("I give up")])
def test_a_repair_that_brings_nothing_new_is_the_last(answer: str | Exception) -> None:
    world = World({(1, 0): "build_failed"}, repairs={(1, 0, 1): answer})
    ended = world.run(an_assignment(iterations=1))
    assert len(world.told(VersionKept)) == 1
    assert world.told(CandidateDropped)[0].unwritten.repair == 1
    assert ended.result is None


def test_a_cheat_is_kept_as_rejected_and_never_called_best() -> None:
    world = World({(1, 0): "correct 1.2", (2, 0): "rejected"}, repairs={(2, 0, 1): "rejected # still"})
    ended = world.run(an_assignment(iterations=2, repairs=1))
    assert [fact.attempt.evaluation.verdict for fact in world.told(VersionKept)][1:] == [Verdict.REJECTED] * 2
    said = [fact.summary for fact in world.told(StepEnded) if fact.summary.startswith("Is rejected")]
    assert said and "torch.tanh does the work" in said[0]
    assert ended.result == 1


def test_all_candidates_fail_and_the_reference_stays() -> None:
    verdicts = ["build_failed", "incorrect", "crashed", "timed_out", "out_of_memory", "rejected"]
    world = World({(i + 1, 0): verdict for i, verdict in enumerate(verdicts)})
    ended = world.run(an_assignment(iterations=6, repairs=0, plateau=2))
    assert (ended.result, ended.attempt, ended.outcome, ended.speedup) == (None, None, None, 1.0)
    assert ended.reason == "All 6 iterations are done. No version was found correct, so the reference stays."
    assert "advise" not in world.work


def test_what_failed_and_why_reaches_the_next_prompt_in_order() -> None:
    world = World(
        {(1, 0): "build_failed", (2, 0): CannotWrite("aten.sort is not known"), (3, 0): "correct 1.5"},
        repairs={(1, 0, 1): "incorrect"},
    )
    world.run(an_assignment(repairs=1))
    first, second, third = failures(world.briefs[-1].history)
    assert first.startswith("v1: Does not build: k.cpp:3:5: error: 'x' was not declared")
    assert second.startswith("v2: Computes something else")
    assert third == "iteration 2: aten.sort is not known"


def test_a_coder_that_cant_write_the_kernel_ends_the_run_naming_the_operation() -> None:
    world = World({(1, 0): CannotWrite("aten.convolution is not among what the built-in coder writes.")})
    ended = world.run(an_assignment(iterations=8))
    assert ended.ending is Ending.FINISHED
    assert ended.reason.startswith("The coder can't write this kernel: aten.convolution is not among")
    assert ended.result is None and len(world.work) == 1


def test_a_coder_that_cant_write_still_gives_a_faster_seed() -> None:
    world = World({(i, 0): CannotWrite("no") for i in (1, 2, 3)})
    ended = world.run(an_assignment(iterations=3, seeds=(Seed("correct 1.4", "ann"),)))
    assert ended.result == 1 and ended.outcome is Outcome.FASTER


def test_a_problem_that_cant_be_judged_is_not_tried() -> None:
    world = World({})
    ended = world.run(an_assignment(facts=ProblemFacts(refusal="Its inputs take 200 GB; N=1024 would fit.")))
    assert ended.ending is Ending.FAILED and "200 GB" in ended.reason
    assert world.work == []


def test_a_device_that_comes_back_is_asked_once_more() -> None:
    world = World({(1, 0): "correct 1.5"}, lost_once={"correct 1.5"})
    ended = world.run(an_assignment(iterations=1))
    assert ended.result == 1 and ended.ending is Ending.FINISHED


def test_a_device_that_stays_away_ends_the_run_as_failed_and_blames_no_candidate() -> None:
    world = World({(1, 0): "correct 1.5", (2, 0): "lost"})
    ended = world.run(an_assignment(iterations=4))
    assert ended.ending is Ending.FAILED
    assert "the host is lost; start its station again" in ended.reason
    assert [fact.attempt.number for fact in world.told(VersionKept)] == [1]
    assert ended.result == 1  # the best was judged in full all the same: the device was there for that


def test_a_device_lost_in_the_full_judgement_shows_the_best_as_an_attempt() -> None:
    world = World({(1, 0): "correct 1.5"}, full={"correct 1.5": "lost"})

    ended = world.run(an_assignment(iterations=1))
    assert (ended.result, ended.attempt, ended.speedup, ended.ending) == (None, 1, 1.0, Ending.FAILED)
    assert "was not judged in full" in ended.reason
