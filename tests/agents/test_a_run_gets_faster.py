"""A run writes, proves and reasons until it is enough, and returns what is faster."""

from __future__ import annotations

from apps.agents.facts import (
    AdviceGiven,
    AdviceHeld,
    BestChanged,
    CandidateDropped,
    ReferenceTimed,
    StepBegan,
    StepEnded,
    VersionJudged,
    VersionKept,
)
from apps.agents.words import Advice, CannotWrite, Ending, History, NothingToGain, Seed
from apps.kernels.evaluation import Outcome, Tier
from tests.agents.doubles import World, an_advice, an_assignment


def test_each_iteration_gets_faster_and_the_best_is_judged_in_full() -> None:
    world = World({(1, 0): "correct 1.2", (2, 0): "correct 1.5", (3, 0): "correct 2.0"})
    ended = world.run()
    assert (ended.result, ended.attempt, ended.outcome, ended.speedup) == (3, 3, Outcome.FASTER, 2.0)
    assert ended.ending is Ending.FINISHED
    assert ended.reason == "All 3 iterations are done. v3 is 2.00x as fast as the reference."
    assert [fact.number for fact in world.told(BestChanged)] == [1, 2, 3]
    (final,) = world.told(VersionJudged)
    assert (final.number, final.purpose, final.evaluation.tier) == (3, "final", Tier.FULL)
    assert world.facts[-1] == ended


def test_every_step_that_begins_ends_and_streams_under_its_own_name() -> None:
    world = World({(1, 0): "correct 1.2", (2, 0): "correct 1.5"})
    world.run(an_assignment(iterations=2))
    began = [fact.step for fact in world.told(StepBegan)]
    assert began == [fact.step for fact in world.told(StepEnded)]
    assert len(set(began)) == len(began)
    assert {step for step, _, _ in world.texts} <= set(began)


def test_the_first_timed_version_gives_the_run_its_reference_once() -> None:
    world = World({(1, 0): "incorrect", (2, 0): "correct 1.5", (3, 0): "correct 1.6"})
    world.run(an_assignment(repairs=0))
    (timed,) = world.told(ReferenceTimed)
    assert timed.evaluation.timing.reference is not None
    assert world.facts.index(timed) > world.facts.index(world.told(VersionKept)[1])


def test_advice_is_held_against_the_version_that_followed_it() -> None:
    world = World({(1, 0): "correct 1.0", (2, 0): "correct 1.25", (3, 0): "correct 1.26"})
    world.run()
    assert [fact.advice.number for fact in world.told(AdviceGiven)] == [1, 2]
    first, second = (fact.holding for fact in world.told(AdviceHeld))
    assert (first.advice, first.version, first.held) == (1, 2, True)
    assert (second.advice, second.version, second.held) == (2, 3, False)
    assert first.happened[0].before == 1.0 and first.happened[0].after == 0.8


def test_a_lead_within_the_least_margin_does_not_change_the_best() -> None:
    world = World({(1, 0): "correct 1.500", (2, 0): "correct 1.505"})
    world.run(an_assignment(iterations=2))
    assert [fact.number for fact in world.told(BestChanged)] == [1]


def test_the_goal_ends_the_run() -> None:
    world = World({(1, 0): "correct 1.2", (2, 0): "correct 2.5"})
    ended = world.run(an_assignment(iterations=8, goal=2.0))
    assert ended.reason.startswith("The goal of 2x is reached.")
    assert ended.result == 2


def test_a_plateau_ends_the_run() -> None:
    world = World({(1, 0): "correct 1.5", **{(i, 0): f"correct 1.1 # {i}" for i in range(2, 9)}})
    ended = world.run(an_assignment(iterations=8, plateau=3))
    assert ended.reason.startswith("Nothing got faster in 3 iterations.")
    assert len(world.told(VersionKept)) == 4


def test_nothing_to_gain_ends_the_run_with_the_conductors_reason() -> None:
    world = World({(1, 0): "correct 1.5"}, advise=lambda history: NothingToGain("It is at 97% of the roof."))
    ended = world.run()
    assert ended.reason.startswith("Nothing more to gain: It is at 97% of the roof.")
    assert ended.result == 1


def test_several_candidates_are_written_first_and_gathered_in_slot_order() -> None:
    world = World({(i, slot): f"correct {1 + i / 4 + slot / 20:.2f}" for i in (1, 2) for slot in (0, 1, 2)})
    world.run(an_assignment(iterations=2, candidates=3))
    kept = [fact.attempt for fact in world.told(VersionKept)]
    assert [(one.number, one.iteration, one.slot) for one in kept] == [
        (1, 1, 0), (2, 1, 1), (3, 1, 2), (4, 2, 0), (5, 2, 1), (6, 2, 2),
    ]  # fmt: skip
    assert [one.advice for one in kept] == [None, None, None, 1, 2, 3]
    assert [holding.holding.advice for holding in world.told(AdviceHeld)] == [1, 2, 3]
    assert all(not brief.history.attempts for brief in world.briefs[:3])


def test_fewer_advices_make_fewer_candidates() -> None:
    def one_only(history: History) -> Advice | NothingToGain:
        given = [advice for advice in history.advices if not any(h.advice == advice.number for h in history.holdings)]
        return NothingToGain("one idea is all there is") if given else an_advice(history)

    world = World({(1, 0): "correct 1.1", (1, 1): "correct 1.2", (2, 0): "correct 1.5"}, advise=one_only)
    ended = world.run(an_assignment(iterations=2, candidates=2))
    assert [fact.attempt.slot for fact in world.told(VersionKept)] == [0, 1, 0]
    assert ended.result == 3


def test_seeds_are_judged_first_and_written_on() -> None:
    seeds = (
        Seed("correct 1.3", "ann"),
        Seed("incorrect", "bob"),
        Seed("correct 1.1", "accepted"),
        Seed("correct 1.3", "eve"),
    )
    world = World({(1, 0): "correct 1.4"})
    ended = world.run(an_assignment(iterations=1, seeds=seeds))
    kept = [fact.attempt for fact in world.told(VersionKept)]
    assert [(one.iteration, one.author, one.parent) for one in kept] == [
        (0, "ann", None), (0, "bob", None), (0, "accepted", None), (1, "scripted", 1),
    ]  # fmt: skip
    assert world.briefs[0].advice is not None and world.briefs[0].advice.base == 1
    assert ended.result == 4


def test_a_duplicate_is_skipped_and_its_evaluation_not_paid_for() -> None:
    world = World({(1, 0): "correct 1.5", (2, 0): "correct 1.5  \n", (3, 0): "correct 1.8"})
    ended = world.run()
    (dropped,) = world.told(CandidateDropped)
    assert (dropped.unwritten.iteration, dropped.unwritten.copy_of, dropped.unwritten.advice) == (2, 1, 1)
    assert [fact.attempt.number for fact in world.told(VersionKept)] == [1, 2]
    assert ended.result == 2


def test_two_candidates_of_one_iteration_that_are_the_same_are_judged_once() -> None:
    world = World({(1, 0): "correct 1.5", (1, 1): "correct 1.5"})
    world.run(an_assignment(iterations=1, candidates=2))
    assert len(world.told(VersionKept)) == 1
    assert "another candidate" in world.told(CandidateDropped)[0].unwritten.reason


def test_a_coder_with_nothing_new_to_write_ends_the_run() -> None:
    world = World({(1, 0): "correct 1.5", (2, 0): "correct 1.5", (3, 0): CannotWrite("no such move")})
    ended = world.run(an_assignment(iterations=8))
    assert ended.reason.startswith("The coder has written nothing new in 2 iterations: no such move")
    assert ended.result == 1


def test_what_a_coder_plans_comes_to_the_coder_as_a_replay_would_give_it() -> None:
    world = World({(1, 0): "correct 1.5", (2, 0): "correct 1.6"})
    world.run(an_assignment(iterations=2))
    attempt = world.briefs[1].history.attempt(1)
    assert attempt is not None and attempt.writing.plan == {"plan": [1, 2]}
