"""What the charts draw, as plain data; every chart's figures stand in a table beside it too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.kernels.evaluation import Evaluation, Roofline
from apps.runs.presentation import figures
from apps.runs.presentation.measured import Measured, load

TOLD = 24  # versions that the chart's words name one by one
_LOOKED_AT = 3  # newest correct versions whose profile may tell where the roof lies


@dataclass(frozen=True)
class SpeedupPoint:
    """One version on the chart: `ratio` over eager with its 95 % interval, None where it failed. Four digits are drawn."""

    name: str
    ratio: float | None
    low: float | None
    high: float | None
    best_so_far: float
    is_best: bool
    word: str
    tier: str


@dataclass(frozen=True)
class SpeedupChart:
    """Speed-up by version, and the two lines to hold it against (None where not known). A version's page lies at
    `address`, its name behind it."""

    points: tuple[SpeedupPoint, ...]
    address: str
    compiled: float | None
    roof: float | None
    words: str


@dataclass(frozen=True)
class RoofPoint:
    """One kernel under the roofs: FLOP per byte, GFLOP/s, GB/s, its share of the roof above it."""

    name: str
    intensity: float
    gflops: float
    gbytes_per_s: float
    share: float | None
    tone: str


@dataclass(frozen=True)
class RooflineChart:
    """The roofs and the points; `mix` and `working_set` say what the bandwidth roof stands for."""

    peak_gflops: float
    bandwidth: float
    mix: str
    working_set: str
    points: tuple[RoofPoint, ...]
    words: str


def speedup_chart(versions: Sequence[Measured], compiled: float | None, best: int | None) -> SpeedupChart:
    """The chart of a run; `best` is the number of the version that leads.

    From that version on the line stays with it: a later one that shows more, but did not take the lead, was not better
    (a quick look at it stands beside the leader's judgement in full).
    """
    points, top, led = [], 1.0, False
    for one in versions:
        row = one.measurement
        if one.version.number == best:
            top, led = one.ratio or top, True
        elif not led:
            top = max(top, one.ratio or 0.0)
        points.append(
            SpeedupPoint(
                name=one.name,
                ratio=_drawn(one.ratio),
                low=_drawn(row.speedup_low if row else None),
                high=_drawn(row.speedup_high if row else None),
                best_so_far=_drawn(top) or 1.0,
                is_best=one.version.number == best,
                word=one.chip.word,
                tier=one.tier,
            )
        )
    address = f"{versions[0].version.run.get_absolute_url()}" if versions else ""
    return SpeedupChart(tuple(points), address, compiled, _roof(versions), _words(points))


def _drawn(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _words(points: Sequence[SpeedupPoint]) -> str:
    """Each version's figure while they can be listened to, else how many there are and how far they came."""
    if len(points) <= TOLD:
        told = ", ".join(f"{p.name} {figures.ratio(p.ratio) if p.ratio else p.word}" for p in points)
        return f"Speed-up over eager by version: {told or 'none yet'}"
    failed = sum(p.ratio is None for p in points)
    best = next((f"{p.name} {figures.ratio(p.ratio)}" for p in points if p.is_best), "none is better than eager")
    return f"Speed-up over eager of {len(points)} versions, {failed} of which failed; the best: {best}"


def _roof(versions: Sequence[Measured]) -> float | None:
    """The speed-up at the memory or arithmetic roof: the reference's time over the least time the roofs allow."""
    newest = [one for one in reversed(versions) if one.ratio is not None][:_LOOKED_AT]
    load(newest)
    for one in newest:
        evaluation = one.evaluation
        point = _own_point(evaluation)
        if (
            evaluation is None
            or point is None
            or evaluation.timing.reference is None
            or evaluation.timing.candidate is None
        ):
            continue
        roofline = evaluation.profile.roofline
        assert roofline is not None
        allowed = min(roofline.peak_gflops, roofline.bandwidth_gbytes_per_s * point.intensity)
        if point.gflops > 0 and allowed > 0:
            least_ms = evaluation.timing.candidate.median_ms * point.gflops / allowed
            return evaluation.timing.reference.median_ms / least_ms
    return None


@dataclass(frozen=True)
class _Place:
    intensity: float
    gflops: float
    gbytes: float
    share: float | None


def _own_point(evaluation: Evaluation | None) -> _Place | None:
    """The candidate's own point: the profiler puts it first."""
    roofline = evaluation.profile.roofline if evaluation else None
    if roofline is None or not roofline.points:
        return None
    first = roofline.points[0]
    if first.intensity <= 0 or first.gflops <= 0:
        return None
    return _Place(first.intensity, first.gflops, first.gbytes_per_s, first.share_of_roof)


def roofline_chart(shown: Sequence[tuple[str, Evaluation | None, str]]) -> RooflineChart | None:
    """The named evaluations under one pair of roofs (the last one's), with eager beside them; None if none has any."""
    roofs: Roofline | None = None
    points: list[RoofPoint] = []
    eager: RoofPoint | None = None
    for name, evaluation, tone in shown:
        place = _own_point(evaluation)
        if evaluation is None or place is None:
            continue
        roofs = evaluation.profile.roofline
        points.append(RoofPoint(name, place.intensity, place.gflops, place.gbytes, place.share, tone))
        timing = evaluation.timing
        if timing.reference and timing.candidate and timing.reference.median_ms:
            slower = timing.candidate.median_ms / timing.reference.median_ms
            share = place.share * slower if place.share is not None else None
            eager = RoofPoint("eager", place.intensity, place.gflops * slower, place.gbytes * slower, share, "plain")
    if roofs is None:
        return None
    points = [eager, *points] if eager else points
    words = ", ".join(
        f"{p.name} {figures.significant(p.gflops)} GFLOP/s ({figures.percent(p.share)} of its roof)" for p in points
    )
    return RooflineChart(
        roofs.peak_gflops,
        roofs.bandwidth_gbytes_per_s,
        roofs.mix,
        figures.size(roofs.working_set_bytes),
        tuple(points),
        f"Roofline: {words}",
    )
