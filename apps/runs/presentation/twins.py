"""Runs on one chart: best so far against iteration and against time, and what may honestly be said of two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.runs.models import Event, Run
from apps.runs.presentation import figures
from apps.runs.presentation.measured import Measured, all_measured


@dataclass(frozen=True)
class CurvePoint:
    """A correct version that took the lead: when (seconds since the start, iteration), and its interval."""

    version: str
    address: str
    iteration: int
    seconds: float
    ratio: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class WayThere:
    """How one run got on. It starts from 1, the reference; `until` is where its line ends."""

    name: str
    points: tuple[CurvePoint, ...]
    iterations: int
    seconds: float
    ended: bool
    tried: int
    failed: int

    @property
    def last(self) -> CurvePoint | None:
        """The best version."""
        return self.points[-1] if self.points else None


def ways_there(runs: Sequence[Run], names: Sequence[str]) -> list[WayThere]:
    """Each run's leads in order of writing, by the figures of the loop (the best one by its newest)."""
    kept = _kept_at([run.pk for run in runs])
    return [_way(run, name, kept.get(run.pk, {})) for run, name in zip(runs, names, strict=True)]


def _way(run: Run, name: str, kept: dict[int, float]) -> WayThere:
    versions = all_measured(run.versions.order_by("number"))
    began = (run.started_at or run.created_at).timestamp()
    points: list[CurvePoint] = []
    for one in versions:
        if one.ratio is not None and one.ratio > (points[-1].ratio if points else 1.0):
            points.append(_point(one, kept.get(one.version.number, one.version.created_at.timestamp()) - began))
    newest = max([*kept.values(), began])
    until = run.finished_at.timestamp() if run.finished_at else newest
    return WayThere(
        name,
        tuple(points),
        max([run.iteration, *(point.iteration for point in points)]),
        max(0.0, until - began),
        not run.is_live,
        len(versions),
        sum(one.ratio is None for one in versions),
    )


def _point(one: Measured, seconds: float) -> CurvePoint:
    row, version = one.measurement, one.version
    assert one.ratio is not None
    low, high = (row.speedup_low, row.speedup_high) if row else (None, None)
    address = version.get_absolute_url()
    return CurvePoint(one.name, address, version.iteration, max(0.0, seconds), one.ratio, low, high)


def _kept_at(runs: Sequence[int]) -> dict[int, dict[int, float]]:
    """When each version was kept, by run and number."""
    found: dict[int, dict[int, float]] = {}
    rows = Event.objects.filter(run__in=runs, kind="version_kept").values_list("run_id", "data__number", "at")
    for run_id, number, at in rows:
        if isinstance(number, int):
            found.setdefault(run_id, {})[number] = at.timestamp()
    return found


@dataclass(frozen=True)
class Twins:
    """A run with the profile on and its twin with it off, on one chart, and the difference in words."""

    on: Run
    off: Run
    ways: tuple[WayThere, WayThere]
    verdict: str
    caution: str


def twins_of(run: Run) -> Twins | None:
    """The pair a run belongs to; None for one that has no twin."""
    other = run.twin or getattr(run, "twin_of", None)
    if other is None:
        return None
    on, off = (run, other) if run.profile else (other, run)
    ways = ways_there([on, off], ["profile on", "profile off"])
    return Twins(on, off, (ways[0], ways[1]), difference(ways[0], ways[1]), _caution(on, off))


def difference(on: WayThere, off: WayThere) -> str:
    """How the search came out with the profile and without, as far as the intervals tell the two apart."""
    so_far = "" if on.ended and off.ended else "So far. "
    return so_far + " ".join([_found(on), _found(off), _apart(on.last, off.last)]).strip()


def _found(way: WayThere) -> str:
    """`Profile on: 4.52× [4.42 – 4.63], first reached in iteration 4.`"""
    point = way.last
    if point is None:
        return f"{way.name.capitalize()}: no version that is faster than the reference."
    ratio = figures.speedup(point.ratio, point.low, point.high)
    return f"{way.name.capitalize()}: {ratio}, first reached in iteration {point.iteration}."


def _apart(on: CurvePoint | None, off: CurvePoint | None) -> str:
    if on is None or off is None:
        return ""
    if on.low is None or on.high is None or off.low is None or off.high is None:
        return "No interval is known, so nothing is said of the difference."
    if on.low <= off.high and off.low <= on.high:
        return "The intervals overlap: these two can't be told apart."
    ratio = on.ratio / off.ratio
    ahead, behind = ("on", "off") if ratio > 1 else ("off", "on")
    least = on.low / off.high if ratio > 1 else off.low / on.high
    return (
        f"With the profile {ahead} the kernel is {figures.ratio(max(ratio, 1 / ratio))} as fast as with it {behind}, and at "
        f"least {figures.ratio(least)} by the ends of the intervals."
    )


def _caution(on: Run, off: Run) -> str:
    """What one pair of runs can't tell."""
    parts = ["The intervals say how well each kernel was timed, not how another pair of runs would come out"]
    if on.coder == "builtin":
        parts.append("the built-in coder takes its turns by what it measures, so close timings send it different ways")
    else:
        parts.append("a model answers differently each time")
    words = f"{parts[0]}: {parts[1]}. Run the pair again, on more problems, before believing in a difference."
    full = [run.result_id is not None and run.outcome == "faster" for run in (on, off)]
    if not all(full):
        words += " Not both bests have been judged in full; until then the figures are the loop's quick ones."
    return words
