"""Evaluations as stations send them: 8 to 20 KB of JSON each, a few dozen kinds of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from apps.kernels.evaluation import Evaluation, Tier
from apps.kernels.plain import to_plain
from apps.kernels.profile.names import UNITS, metric
from tests.pages import evaluations

_SPEEDS = (1.9, 1.6, 1.2, 0.97, 0.78, 0.61, 0.52, 0.44, 0.43, 0.42)  # milliseconds a call
_LINES = 48  # of the hot loop's assembly


@cache
def correct(place: int, *, full: bool = False) -> tuple[Evaluation, Any]:
    """A correct candidate's evaluation, faster with `place`, and the same as JSON."""
    tier = Tier.FULL if full else Tier.QUICK
    plain = evaluations.correct(_SPEEDS[place % len(_SPEEDS)], tier, counters=place % 2 == 0)
    profile = plain.profile
    known = {one.name for one in profile.metrics}
    more = tuple(metric(name, 1.0 + place, "profiling run") for name in UNITS if name not in known)
    loops = tuple(replace(loop, assembly=loop.assembly * (_LINES // 8)) for loop in profile.hot_loops)
    told = replace(profile, metrics=profile.metrics + more, hot_loops=loops, remarks=profile.remarks * 6)
    whole = replace(plain, profile=told)
    return whole, to_plain(whole)


@cache
def failed(place: int) -> tuple[Evaluation, Any]:
    """One that is wrong or does not build, and the same as JSON."""
    whole = evaluations.wrong() if place % 2 else evaluations.build_failed()
    return whole, to_plain(whole)
