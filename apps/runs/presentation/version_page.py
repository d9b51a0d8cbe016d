"""One version: its figures, measurements and environment."""

from __future__ import annotations

import json
from dataclasses import dataclass

from apps.kernels.evaluation import Evaluation
from apps.kernels.machine import mix_in_words
from apps.kernels.plain import Plain
from apps.runs.models import Measurement, Version
from apps.runs.presentation import figures
from apps.runs.presentation.measured import Measured, read
from apps.runs.presentation.states import Chip, outcome_chip, verdict_chip


@dataclass(frozen=True)
class Tile:
    """One figure on top: what it is, the figure, what belongs to it."""

    name: str
    figure: str
    under: str
    tone: str = ""


@dataclass(frozen=True)
class SpeedOfLight:
    """A bar of how much of a ceiling is reached, 0 to 1."""

    name: str
    part: float
    words: str


@dataclass(frozen=True)
class Past:
    """One measurement of the version."""

    measurement: Measurement
    verdict: Chip
    outcome: Chip | None
    speedup: str
    candidate: str
    margin: str
    aa: str


def tiles(one: Measured) -> list[Tile]:
    """The figures on top of a version's page."""
    evaluation = one.evaluation
    if evaluation is None:
        return [Tile("verdict", one.chip.word, "no host has judged it yet")]
    timing, checks = evaluation.timing, evaluation.correctness
    made = [_speed_tile(one)]
    over = timing.speedup_over_compiled
    if over:
        made.append(Tile("over torch.compile", figures.ratio(over.median), figures.interval(*over.ci95)))
    if timing.candidate and timing.reference:
        under = f"eager {figures.milliseconds(timing.reference.median_ms)}"
        made.append(Tile("a call takes", figures.milliseconds(timing.candidate.median_ms), under))
    worst = (
        f"error {figures.significant(checks.max_error, 2)} of scale, limit {figures.significant(checks.tolerance, 2)}"
    )
    passed = checks.trials > 0 and checks.passed == checks.trials
    tone = "good" if passed else "bad"
    made.append(
        Tile(
            "checks",
            f"{'✓' if passed else '✕'} {checks.passed} / {checks.trials}",
            worst if checks.max_error is not None else "",
            tone,
        )
    )
    called = ", ".join(evaluation.library_calls) or "nothing of torch called"
    made.append(
        Tile(
            "policy · isolation",
            evaluation.policy.value,
            f"{called} · {evaluation.isolation.get('level', 'unknown')} jail",
        )
    )
    return made


def _speed_tile(one: Measured) -> Tile:
    if one.ratio is None:
        return Tile("verdict", one.chip.word, one.detail[:160], "bad")
    judged = f"judged in full{_decided(one)}" if one.is_full else "quick, not yet a result"
    return Tile(
        "over eager",
        one.speedup,
        f"{one.interval} · {judged}",
        "good" if one.outcome and one.outcome.tone == "good" else "",
    )


def _decided(one: Measured) -> str:
    """What the outcome rests on, which is wider than the 95 % shown: empty where it was not timed to be decided."""
    ratio = one.evaluation.timing.speedup if one.evaluation and one.evaluation.timing else None
    if ratio is None or ratio.decision_interval is None or ratio.level is None or ratio.margin is None:
        return ""
    interval = figures.interval(*ratio.decision_interval)
    return f", decided at {100 * ratio.level:.3g} %: {interval} against a margin of {figures.percent(ratio.margin)}"


def speed_of_light(evaluation: Evaluation | None) -> list[SpeedOfLight]:
    """How much of each ceiling the kernel reaches."""
    roofline = evaluation.profile.roofline if evaluation else None
    if roofline is None or not roofline.points:
        return []
    point = roofline.points[0]
    moved, could = point.gbytes_per_s, roofline.bandwidth_gbytes_per_s
    memory = f"{figures.significant(moved)} of {figures.significant(could)} GB/s ({mix_in_words(roofline.mix)})"
    arithmetic = f"{figures.significant(point.gflops)} of {figures.significant(roofline.peak_gflops)} GFLOP/s"
    bars = [
        SpeedOfLight("memory", moved / could, memory),
        SpeedOfLight("arithmetic", point.gflops / roofline.peak_gflops, arithmetic),
    ]
    if point.share_of_roof is not None:
        bars.append(
            SpeedOfLight(
                "the roof above it", point.share_of_roof, f"at {figures.significant(point.intensity)} FLOP a byte"
            )
        )
    return bars


def pasts(version: Version) -> list[Past]:
    """Every measurement of a version, newest first."""
    return [_past(row) for row in version.measurements.select_related("device__host", "asked_by").order_by("-id")]


def _past(row: Measurement) -> Past:
    evaluation = read(row)
    timing = evaluation.timing if evaluation else None
    ratio = timing.speedup if timing else None
    return Past(
        row,
        verdict_chip(row.verdict),
        outcome_chip(row.outcome),
        figures.speedup(row.speedup, row.speedup_low, row.speedup_high),
        figures.milliseconds(timing.candidate.median_ms) if timing and timing.candidate else figures.NOT_KNOWN,
        figures.percent(ratio.margin) if ratio and ratio.margin is not None else "",
        figures.ratio(ratio.aa) if ratio and ratio.aa is not None else "",
    )


def environment(evaluation: Evaluation | None) -> list[tuple[str, str]]:
    """Everything the evaluation says of where it was made, as names and words."""
    if evaluation is None:
        return []
    rows = [*_flat("isolation", evaluation.isolation), *_flat("", evaluation.environment)]
    rows += [(f"seconds: {name}", figures.duration(seconds)) for name, seconds in evaluation.split.items()]
    return [*rows, ("seconds in all", figures.duration(evaluation.seconds)), ("schema", str(evaluation.schema))]


def _flat(prefix: str, values: dict[str, Plain]) -> list[tuple[str, str]]:
    rows = []
    for name, value in values.items():
        title = f"{prefix} {name}".strip()
        if isinstance(value, dict):
            rows += _flat(title, value)
        else:
            rows.append((title, value if isinstance(value, str) else json.dumps(value)))
    return rows
