"""People stop, pause and steer a run; limits end it. The best is kept and judged in full, unless told to end at once."""

from __future__ import annotations

import pytest

from apps.agents.budget import Limits, Spent, exceeded
from apps.agents.facts import BestChanged, HintTaken, VersionJudged, VersionKept
from apps.agents.ports import Stopped
from apps.agents.words import CannotWrite, Ending, Orders, Usage
from apps.kernels.evaluation import Outcome
from tests.agents.doubles import World, an_advice, an_assignment

STOP = Orders(end="Stopped by Ann.")
WRITES = {(1, 0): "correct 1.5", (2, 0): "incorrect", (3, 0): "correct 1.8"}


@pytest.mark.parametrize(
    ("orders", "best"),
    [
        ({"start": [STOP]}, None),
        ({"write": [STOP]}, None),
        ({"write": [Orders(), STOP]}, 1),
        ({"repair": [STOP]}, 1),
        ({"advise": [Orders(), STOP]}, 1),
        ({"advise": [Orders(), Orders(), STOP]}, 1),
    ],
)
def test_a_stop_at_any_point_keeps_the_best_and_judges_it_in_full(
    orders: dict[str, list[Orders]], best: int | None
) -> None:
    world = World(dict(WRITES), repairs={(2, 0, 1): "correct 1.2"}, orders=orders)
    ended = world.run(an_assignment(repairs=1))
    assert ended.ending is Ending.STOPPED and ended.reason.startswith("Stopped by Ann.")
    assert ended.result == best
    assert bool(world.told(VersionJudged)) == (best is not None)


def test_a_stop_in_the_middle_of_a_judgement_drops_that_candidate_alone() -> None:
    world = World({(1, 0): "correct 1.5", (2, 0): "stopped"})
    ended = world.run()
    assert ended.ending is Ending.STOPPED and ended.result == 1
    assert len(world.told(VersionKept)) == 1


def test_a_stop_between_candidates_keeps_the_first_ones_gain() -> None:
    world = World({(1, 0): "correct 1.5", (1, 1): "stopped"})
    ended = world.run(an_assignment(candidates=2))
    assert [fact.number for fact in world.told(BestChanged)] == [1]
    assert ended.result == 1


def test_a_stop_while_the_coder_thinks_counts_what_it_took() -> None:
    stopped = Stopped("Stopped by Ann.", usage=Usage(1.0, "m", 10, 1, 0.5))
    world = World({(1, 0): "correct 1.5", (2, 0): stopped})
    ended = world.run()
    assert ended.ending is Ending.STOPPED and ended.result == 1


def test_a_stop_while_the_conductor_thinks() -> None:
    def interrupted(history: object) -> object:
        raise Stopped("Stopped by Ann.")

    world = World({(1, 0): "correct 1.5"}, advise=interrupted)  # type: ignore[arg-type]
    ended = world.run()
    assert ended.ending is Ending.STOPPED and ended.result == 1


@pytest.mark.parametrize("how", ["orders", "in a judgement"])
def test_an_end_at_once_judges_nothing_more_and_says_so(how: str) -> None:
    orders = {"write": [Orders(), Orders(end="Ended by Ann.", at_once=True)]} if how == "orders" else {}
    world = World({(1, 0): "correct 1.5", (2, 0): "stopped at once"}, orders=orders)
    ended = world.run()
    assert (ended.result, ended.attempt, ended.outcome, ended.speedup) == (None, 1, None, 1.0)
    assert "v1, was not judged in full" in ended.reason and ended.ending is Ending.STOPPED
    assert world.told(VersionJudged) == []


def test_an_end_at_once_while_the_best_is_judged_in_full() -> None:
    world = World({(1, 0): "correct 1.5"}, full={"correct 1.5": "stop at once"})
    ended = world.run(an_assignment(iterations=1))
    assert ended.ending is Ending.STOPPED and ended.result is None and ended.attempt == 1


def test_a_hint_reaches_the_next_prompt_once() -> None:
    world = World(dict(WRITES), repairs={(2, 0, 1): "correct 1.2"}, hints=["try tiles of 64"])
    world.run(an_assignment(repairs=1))
    assert [fact.text for fact in world.told(HintTaken)] == ["try tiles of 64"]
    assert world.briefs[0].history.hints == ("try tiles of 64",)
    assert world.briefs[-1].history.hints == ("try tiles of 64",)


def test_more_iterations_asked_for_while_it_runs() -> None:
    world = World(
        {(i, 0): f"correct {1 + i / 4}" for i in range(1, 6)}, orders={"advise": [Orders(), Orders(iterations=5)]}
    )
    world.run(an_assignment(iterations=2))
    assert len(world.told(VersionKept)) == 5


def test_the_time_limit_ends_the_run_and_the_best_is_still_judged() -> None:
    world = World({(i, 0): f"correct {1 + i / 4}" for i in range(1, 9)}, tick=10.0)
    ended = world.run(an_assignment(iterations=8, seconds=100.0))
    assert ended.reason.startswith("The time limit of 100 s is reached.")
    assert ended.outcome is Outcome.FASTER and ended.ending is Ending.FINISHED
    assert 0 < len(world.told(VersionKept)) < 8


def test_the_time_a_run_is_paused_does_not_count() -> None:
    world = World({(i, 0): f"correct {1 + i / 4}" for i in range(1, 4)}, tick=0.1, pause=1000.0)
    world.run(an_assignment(iterations=3, seconds=100.0))
    assert len(world.told(VersionKept)) == 3


def test_the_money_limit_ends_the_run() -> None:
    world = World({(i, 0): f"correct {1 + i / 4}" for i in range(1, 9)})
    ended = world.run(an_assignment(iterations=8, money_usd=0.5))  # each writing costs a quarter
    assert ended.reason.startswith("The money limit of 0.5 USD is reached.")
    assert len(world.told(VersionKept)) == 2


def test_a_money_limit_of_nothing_lets_a_coder_work_that_costs_nothing() -> None:
    assert exceeded(Spent(), Limits(8, money_usd=0.0)) is None
    assert exceeded(Spent(cost_usd=0.01), Limits(8, money_usd=0.0)) is not None


def test_a_call_of_unknown_price_is_counted_as_unpriced_and_not_as_free() -> None:
    spent = Spent().plus(Usage(model="m", tokens_in=5)).plus(Usage(model="m", cost_usd=0.5)).plus(Usage())
    assert (spent.unpriced, spent.cost_usd, spent.tokens_in) == (1, 0.5, 5)


def test_what_can_never_be_written_was_paid_for_all_the_same() -> None:
    refusal = CannotWrite("nothing usable came", Usage(1.0, "m", 10, 10, 0.5))
    world = World({(1, 0): "correct 1.5", (2, 0): refusal, (3, 0): "correct 2.0"})
    ended = world.run(an_assignment(iterations=8, money_usd=0.7))
    assert ended.reason.startswith("The money limit")
    assert ended.result == 1


def test_advice_from_a_run_that_stops_before_it_is_followed_is_held_against_nothing() -> None:
    world = World({(1, 0): "correct 1.5"}, orders={"write": [Orders(), STOP]}, advise=an_advice)
    assert world.run().result == 1
