"""A judgement whose time runs out between two groups still takes the one it has said it takes."""

from __future__ import annotations

import math

import pytest

from apps.kernels.evaluation import Outcome
from apps.kernels.judge.race import GROUPS, Race
from apps.kernels.judge.summary import summarise
from apps.kernels.judge.timing import Group


def _race(groups: int) -> Race:
    """So many groups that scatter by a tenth, each of which took five seconds and ten pairs of a tenth of one."""
    done = [
        Group({}, 1, {"reference": [1000.0 + 100 * (n % 2)] * 10, "candidate": [1000.0] * 10}) for n in range(groups)
    ]
    return Race(done, count=groups + 1, overhead=4.0, a_round=0.1)


@pytest.mark.parametrize("groups", [GROUPS - 1, GROUPS, GROUPS + 1])
@pytest.mark.parametrize("left", [-3.0, 0.0, 0.5, 30.0])
def test_a_group_that_begins_has_a_share_of_what_is_left(groups: int, left: float) -> None:
    assert _race(groups).remaining(left, full=True) >= 1


def test_time_is_shared_among_more_groups_while_they_scatter() -> None:
    assert _race(GROUPS).remaining(60.0, full=True) > 1


def test_a_difference_has_to_be_beyond_what_is_noise_for_either_side() -> None:
    """The reference takes just over a millisecond, the candidate just under: two kinds of call, one of them noisy here."""
    groups = [Group({}, 1, {"reference": [1020.0] * 10, "candidate": [990.0] * 10}) for _ in range(GROUPS)]
    timing = summarise(Race(groups), {"under 10 ms": 0.05}, full=True)
    assert timing.speedup is not None and timing.speedup.margin == pytest.approx(math.expm1(0.05))
    assert timing.outcome is Outcome.WITHIN_NOISE
