"""Intervals and the one rule by which something is called faster, in plain Python.

The unit is the log ratio of a pair, reference over candidate. A group of processes gives the median of its pairs; the
interval is Student's over the groups' medians, since pairs of one group share their processes' luck.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

DECISION_LEVEL = 0.999
SHOWN_LEVEL = 0.95
SMALLEST_MARGIN = 0.01


def median(values: Sequence[float]) -> float:
    """The median; 0 for none."""
    return statistics.median(values) if values else 0.0


def log_ratios(reference: Sequence[float], candidate: Sequence[float]) -> list[float]:
    """log(reference / candidate) of each pair: positive where the candidate is faster."""
    return [math.log(r / c) for r, c in zip(reference, candidate, strict=True)]


def interval_over_groups(estimates: Sequence[float], level: float) -> tuple[float, float]:
    """Student's interval of the groups' estimates; infinite with fewer than two."""
    if len(estimates) < 2:
        return -math.inf, math.inf
    mean = statistics.fmean(estimates)
    half = t_quantile(len(estimates) - 1, level) * statistics.stdev(estimates) / math.sqrt(len(estimates))
    return mean - half, mean + half


def interval_of_median(values: Sequence[float], level: float) -> tuple[float, float]:
    """Distribution-free interval of a median from order statistics (binomial); the range where there are too few."""
    ordered, count = sorted(values), len(values)
    if not count:
        return -math.inf, math.inf
    outside, below = (1 - level) / 2, 0.0
    ways, rank = 0.0, 0  # the logarithm of how many choices of k there are
    for k in range(count // 2):
        below += math.exp(ways - count * math.log(2))
        ways += math.log((count - k) / (k + 1))
        if below > outside:
            break
        rank = k + 1
    low = max(0, rank - 1)
    return ordered[low], ordered[count - 1 - low]


@lru_cache(maxsize=256)
def t_quantile(freedom: int, level: float) -> float:
    """The value that Student's t with `freedom` degrees exceeds in magnitude with probability 1 - level."""
    low, high = 0.0, 1e4
    for _ in range(200):
        middle = (low + high) / 2
        if _t_inside(middle, freedom) < level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _t_inside(t: float, freedom: int) -> float:
    """P(|T| <= t), by the finite series for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    theta = math.atan2(t, math.sqrt(freedom))
    sine, cosine = math.sin(theta), math.cos(theta)
    if freedom == 1:
        return 2 * theta / math.pi
    if freedom % 2:
        term = total = cosine
        for k in range(3, freedom - 1, 2):
            term *= cosine * cosine * (k - 1) / k
            total += term
        return 2 / math.pi * (theta + sine * total)
    term = total = 1.0
    for k in range(2, freedom - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    return sine * total


def outcome(interval: tuple[float, float], margin: float) -> str:
    """faster, slower or within_noise: the whole decision interval beyond the margin, or not."""
    if interval[0] > math.log1p(margin):
        return "faster"
    if interval[1] < -math.log1p(margin):
        return "slower"
    return "within_noise"


def settled(ratios: Sequence[float], *, practical: float = 0.05, narrow: float = 0.02) -> bool:
    """Whether a quick look may stop: the 99% interval of the median lies beyond ±`practical`, or is narrow."""
    low, high = interval_of_median(ratios, 0.99)
    beyond = low > math.log1p(practical) or high < -math.log1p(practical)
    return beyond or (high - low) < 2 * narrow


def pairs_wanted(ratios: Sequence[float], groups: int, *, clear: float = 0.2, narrow: float = 0.015) -> float:
    """Pairs a group needs, by what the first of `groups` groups showed.

    None (0.0) beyond what is usual where the 99% interval of its median lies beyond ±`clear`; else so many that the
    decision interval is expected to reach ±`narrow`: a median's standard error is 1.2533 σ/√n for normal pairs, σ taken
    from the median absolute deviation (1.4826), since single pairs have heavy tails.
    """
    low, high = interval_of_median(ratios, 0.99)
    if low > math.log1p(clear) or high < -math.log1p(clear):
        return 0.0
    middle = median(ratios)
    sigma = 1.4826 * median([abs(ratio - middle) for ratio in ratios])
    return (1.2533 * sigma * t_quantile(groups - 1, DECISION_LEVEL) / narrow) ** 2 / groups


def wide(estimates: Sequence[float], *, clear: float = 0.2, narrow: float = 0.015) -> bool:
    """Whether groups scatter so much that the decision interval exceeds ±`narrow`, and all of it isn't beyond ±`clear`."""
    low, high = interval_over_groups(estimates, DECISION_LEVEL)
    beyond = low > math.log1p(clear) or high < -math.log1p(clear)
    return (high - low) / 2 > narrow and not beyond


@dataclass(frozen=True)
class Plan:
    """Seconds to share among groups, what each takes besides its pairs, what a pair takes, and how many it may have."""

    seconds: float
    overhead: float
    a_pair: float
    fewest: int
    most: int

    def groups(self, done: int, pairs: int, least: int, largest: int) -> int:
        """Of `least` to `largest` groups, `done` of them with `pairs` in all included, so many that the interval is narrowest.

        It is as wide as Student's quantile over the root of the number of pairs. More groups have a smaller quantile and
        leave time for fewer pairs. `done` where there is time for none.
        """
        widths = {}
        for count in range(max(least, done + 1), largest + 1):
            more = count - done
            each = (self.seconds / more - self.overhead) / max(self.a_pair, 1e-9)
            if each >= self.fewest:
                widths[count] = t_quantile(count - 1, DECISION_LEVEL) / math.sqrt(pairs + more * min(each, self.most))
        return min(widths, key=lambda count: widths[count], default=max(least, done))


def kind_of_call(seconds: float) -> str:
    """The kind of call that a margin is calibrated for: how long one takes."""
    for name, bound in (("under 0.1 ms", 1e-4), ("under 1 ms", 1e-3), ("under 10 ms", 1e-2), ("under 100 ms", 0.1)):
        if seconds < bound:
            return name
    return "over 100 ms"


def margin(noise: dict[str, float], seconds: float) -> float:
    """At least 1%, and at least what the same code against itself showed here for calls of that kind.

    `noise` holds by kind of call what A/A measurements of earlier judgements stayed below (`host.noise`).
    """
    return max(SMALLEST_MARGIN, math.expm1(abs(noise.get(kind_of_call(seconds), 0.0))))
