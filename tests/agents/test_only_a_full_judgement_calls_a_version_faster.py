"""However a run ends, it returns a version only if the full judgement calls it faster; the last contenders duel first."""

from __future__ import annotations

import pytest

from apps.agents.facts import BestChanged, VersionJudged, VersionKept
from apps.kernels.evaluation import Outcome, Tier, Verdict
from tests.agents.doubles import World, an_assignment


def judged(world: World, purpose: str) -> list[VersionJudged]:
    return [fact for fact in world.told(VersionJudged) if fact.purpose == purpose]


@pytest.mark.parametrize(("speed", "outcome"), [("1.01", Outcome.WITHIN_NOISE), ("0.7", Outcome.SLOWER)])
def test_a_best_that_is_not_faster_leaves_the_reference_and_is_shown_as_an_attempt(
    speed: str, outcome: Outcome
) -> None:
    world = World({(1, 0): f"correct {speed}"})
    ended = world.run(an_assignment(iterations=1))
    assert (ended.result, ended.attempt, ended.outcome, ended.speedup) == (None, 1, outcome, 1.0)
    assert "which stays" in ended.reason


def test_fast_in_the_loop_but_within_noise_in_full_is_not_returned() -> None:
    world = World({(1, 0): "correct 1.5"}, full={"correct 1.5": "correct 1.0"})
    ended = world.run(an_assignment(iterations=1))
    assert ended.result is None and ended.outcome is Outcome.WITHIN_NOISE


def test_the_last_contenders_are_timed_against_each_other() -> None:
    world = World({(1, 0): "correct 1.50", (2, 0): "correct 1.49 # close", (3, 0): "correct 1.2"})
    world.run()
    (duel,) = judged(world, "rival")
    assert (duel.number, duel.rival_of, duel.evaluation.tier) == (2, 1, Tier.QUICK)
    assert judged(world, "final")[0].number == 1


def test_a_contender_that_is_clearly_faster_in_the_duel_leads_from_then_on() -> None:
    world = World(
        {(1, 0): "correct 1.50", (2, 0): "correct 1.505 # close"}, rivals={"correct 1.505 # close": "correct 1.7"}
    )
    ended = world.run(an_assignment(iterations=2))
    assert [fact.number for fact in world.told(BestChanged)] == [1, 2]
    assert judged(world, "final")[0].number == 2 and ended.result == 2


def test_contenders_that_can_not_be_timed_against_each_other_end_nothing() -> None:
    world = World({(1, 0): "correct 1.50", (2, 0): "correct 1.49 # close"}, rivals={"correct 1.49 # close": "lost"})
    ended = world.run(an_assignment(iterations=2))
    assert (ended.result, ended.speedup) == (1, 1.5)


def test_a_best_that_does_not_hold_in_full_gives_way_to_the_next_best() -> None:
    world = World({(1, 0): "correct 1.3", (2, 0): "correct 3.0"}, full={"correct 3.0": "rejected"})
    ended = world.run(an_assignment(iterations=2))
    assert [fact.number for fact in judged(world, "final")] == [2, 1]
    assert (ended.result, ended.speedup) == (1, 1.3)
    assert world.told(BestChanged)[-1].number == 1


def test_where_none_holds_in_full_the_reference_stays() -> None:
    world = World(
        {(1, 0): "correct 1.3", (2, 0): "correct 3.0"}, full={"correct 3.0": "rejected", "correct 1.3": "crashed"}
    )
    ended = world.run(an_assignment(iterations=2))
    assert (ended.result, ended.attempt, ended.speedup) == (None, None, 1.0)
    assert "No version" in ended.reason


def test_load_inline_is_confirmed_with_the_real_headers_before_it_is_called_best() -> None:
    source = "correct 1.5 # load_inline"
    world = World({(1, 0): source, (2, 0): "correct 1.2"})
    ended = world.run(an_assignment(iterations=2))
    (confirmed,) = judged(world, "real_headers")
    assert confirmed.number == 1
    assert world.facts.index(confirmed) < world.facts.index(world.told(BestChanged)[0])
    assert ended.result == 1


def test_load_inline_that_fails_with_the_real_headers_is_never_called_best() -> None:
    source = "correct 2.5 # load_inline"
    world = World({(1, 0): "correct 1.5", (2, 0): source}, real_headers={source: "build_failed"})
    ended = world.run(an_assignment(iterations=2))
    assert [fact.number for fact in world.told(BestChanged)] == [1]
    assert ended.result == 1


def test_a_stop_in_the_middle_of_a_confirmation_confirms_it_at_the_end() -> None:
    source = "correct 1.5 # load_inline"
    world = World({(1, 0): source}, real_headers={source: "stopped"}, full={source: source})
    ended = world.run(an_assignment(iterations=3))
    assert ended.reason.startswith("Stopped by Ann.")
    assert len(world.told(VersionKept)) == 1 and ended.result == 1


def test_a_cheat_found_only_in_full_is_the_versions_verdict_from_then_on() -> None:
    world = World({(1, 0): "correct 3.0"}, full={"correct 3.0": "rejected"})
    ended = world.run(an_assignment(iterations=1))
    assert judged(world, "final")[0].evaluation.verdict is Verdict.REJECTED
    assert ended.attempt is None and ended.outcome is None
