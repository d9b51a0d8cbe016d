"""The statistics of a judgement: intervals with the values of the tables, and a rule that noise alone does not trip."""

from __future__ import annotations

import math
import random

import pytest

from apps.kernels.judge import statistics

GROUPS, PAIRS = 8, 30


@pytest.mark.parametrize(
    ("freedom", "level", "expected"),
    [(1, 0.95, 12.706), (7, 0.95, 2.365), (7, 0.999, 5.408), (8, 0.999, 5.041), (30, 0.99, 2.750), (2, 0.999, 31.599)],
)
def test_students_quantiles_are_those_of_the_tables(freedom: int, level: float, expected: float) -> None:
    assert statistics.t_quantile(freedom, level) == pytest.approx(expected, abs=6e-4)


def test_a_medians_interval_holds_it_as_often_as_it_says() -> None:
    draw = random.Random(1)
    inside = 0
    for _ in range(2000):
        low, high = statistics.interval_of_median([draw.gauss(0, 1) for _ in range(25)], 0.95)
        inside += low <= 0 <= high
    assert inside / 2000 >= 0.945


def test_too_few_groups_decide_nothing() -> None:
    assert statistics.outcome(statistics.interval_over_groups([0.7], 0.999), 0.01) == "within_noise"


@pytest.mark.parametrize(("shift", "expected"), [(0.05, "faster"), (-0.05, "slower"), (0.004, "within_noise")])
def test_one_rule_gives_all_three_outcomes(shift: float, expected: str) -> None:
    estimates = [shift + d / 1000 for d in (-4, -3, -1, 0, 1, 2, 3, 2)]
    assert statistics.outcome(statistics.interval_over_groups(estimates, 0.999), 0.01) == expected


@pytest.mark.parametrize("luck", [0.0, 0.01], ids=["pairs scatter", "processes too"])
def test_noise_alone_is_hardly_ever_called_a_difference(luck: float) -> None:
    """One pair in ten far off, as on a shared machine: under 0.2% of 10,000 judgements say faster or slower."""
    draw = random.Random(7)
    noise = [draw.gauss(0, 0.05) if draw.random() < 0.9 else draw.gauss(0, 0.6) for _ in range(5000)]
    wrong = 0
    for _ in range(10_000):
        estimates = [statistics.median(draw.choices(noise, k=9)) / 2 + draw.gauss(0, luck) for _ in range(GROUPS)]
        wrong += statistics.outcome(statistics.interval_over_groups(estimates, 0.999), 0.01) != "within_noise"
    assert wrong < 20


def test_taking_more_groups_where_they_scatter_makes_noise_no_difference() -> None:
    """8 groups, then one more at a time while the interval is wide, to 16: still under 0.2% of 10,000 judgements."""
    draw = random.Random(5)
    wrong = taken = 0
    for _ in range(10_000):
        spread = draw.choice((0.003, 0.01, 0.03))
        estimates = [draw.gauss(0, spread) for _ in range(GROUPS)]
        while len(estimates) < 16 and statistics.wide(estimates):
            estimates.append(draw.gauss(0, spread))
        taken += len(estimates) > GROUPS
        wrong += statistics.outcome(statistics.interval_over_groups(estimates, 0.999), 0.01) != "within_noise"
    assert taken > 3000
    assert wrong < 20


def test_more_scatter_wants_more_pairs_and_a_clear_difference_no_more() -> None:
    draw = random.Random(3)

    def wanted(spread: float, shift: float = 0.0) -> float:
        return statistics.pairs_wanted([draw.gauss(shift, spread) for _ in range(PAIRS)], GROUPS)

    assert wanted(0.02) < wanted(0.06) < wanted(0.2)
    assert wanted(0.1, shift=math.log(2)) == 0.0
    assert wanted(0.1, shift=-math.log(2)) == 0.0


def test_the_pairs_wanted_reach_the_width_aimed_at() -> None:
    """With as many as are wanted, half of a judgement's interval is near 1.5% on normal noise."""
    draw, sigma = random.Random(11), 0.04
    pairs = round(statistics.pairs_wanted([draw.gauss(0, sigma) for _ in range(4000)], GROUPS))
    widths = []
    for _ in range(300):
        estimates = [statistics.median([draw.gauss(0, sigma) for _ in range(pairs)]) for _ in range(GROUPS)]
        low, high = statistics.interval_over_groups(estimates, statistics.DECISION_LEVEL)
        widths.append((high - low) / 2)
    assert statistics.median(widths) == pytest.approx(0.015, rel=0.12)


def test_a_margin_is_never_below_one_percent_and_never_below_this_hosts_noise() -> None:
    assert statistics.margin({}, 0.005) == statistics.SMALLEST_MARGIN
    assert statistics.margin({"under 10 ms": 0.03}, 0.005) == pytest.approx(math.expm1(0.03))
    assert statistics.margin({"under 10 ms": 0.03}, 0.5) == statistics.SMALLEST_MARGIN


def test_time_is_shared_among_so_many_groups_that_the_interval_is_narrowest() -> None:
    """Where starting a group takes little there are many; where it takes as long as its pairs, few; none beyond the time."""
    cheap = statistics.Plan(seconds=40, overhead=0.1, a_pair=0.02, fewest=5, most=120)
    dear = statistics.Plan(seconds=32, overhead=2.5, a_pair=0.08, fewest=5, most=120)
    assert cheap.groups(1, 30, 8, 16) == 16
    assert 8 <= dear.groups(1, 20, 8, 16) < 11
    assert statistics.Plan(1.0, 2.5, 0.08, 5, 120).groups(9, 180, 8, 16) == 9
    assert statistics.Plan(1.0, 2.5, 0.08, 5, 120).groups(2, 40, 8, 16) == 8
