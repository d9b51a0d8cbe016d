"""Rows of the list of runs, read in two queries however many there are."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet
from django.utils import timezone

from apps.runs.models import Run, Version
from apps.runs.presentation import figures, gains
from apps.runs.presentation.states import Chip, outcome_chip, run_chip

_WIDTH, _HEIGHT = 96, 18


@dataclass(frozen=True)
class Spark:
    """Best so far by version as an SVG path on a log scale, with a word for those who don't see it."""

    path: str
    failures: tuple[tuple[float, float], ...]
    words: str
    width: int = _WIDTH
    height: int = _HEIGHT


@dataclass(frozen=True)
class RunRow:
    """One run of the list."""

    run: Run
    chip: Chip
    speedup: str
    interval: str
    outcome: Chip | None
    spark: Spark | None
    spend: str
    per_gain: str
    took: str
    at: datetime


def spark_of(ratios: Sequence[float | None]) -> Spark | None:
    """The sparkline of a run's versions in order; None stands for one that failed."""
    if not ratios:
        return None
    best, steps, failures = 1.0, [1.0], []
    for value in ratios:
        best = max(best, value or 0.0)
        steps.append(best)
    top = max(math.log(max(*steps, 2.0)), 1e-9)
    step = (_WIDTH - 4) / len(ratios)

    def y(value: float) -> float:
        return round(_HEIGHT - 3 - (_HEIGHT - 6) * math.log(value) / top, 1)

    path = f"M2 {y(1.0)}"
    for i, value in enumerate(steps[1:], 1):
        path += f"H{round(2 + (i - 0.5) * step, 1)}V{y(value)}"
        if ratios[i - 1] is None:
            failures.append((round(2 + (i - 0.5) * step, 1), y(value)))
    failed = f", {len(failures)} failed" if failures else ""
    return Spark(
        path + f"H{_WIDTH - 2}", tuple(failures), f"{len(ratios)} versions{failed}, best {figures.ratio(best)}"
    )


def took(run: Run) -> float | None:
    """Seconds from the start of a run to its end, or to now while it goes on."""
    return ((run.finished_at or timezone.now()) - run.started_at).total_seconds() if run.started_at else None


def spend(run: Run) -> str:
    """Tokens and money; the built-in coder spends neither."""
    tokens = run.tokens_in + run.tokens_out
    if not tokens and not run.cost_usd:
        return "none" if run.coder == "builtin" else figures.NOT_KNOWN
    about = "≈ " if run.cost_estimated else ""
    return f"{about}{figures.money(run.cost_usd, run.cost_unknown)} · {about}{figures.count(tokens)} tok"


def rows_needed() -> QuerySet[Run]:
    """Runs with what their rows show, and none of what is long."""
    lean = Run.objects.select_related("problem", "device__host", "owner")
    return lean.defer("seeds", "problem__source", "problem__description", "device__host__report")


def rows_of(runs: Iterable[Run]) -> list[RunRow]:
    """The rows of these runs, in their order."""
    runs = list(runs)
    ratios: dict[int, list[float | None]] = defaultdict(list)
    versions = Version.objects.filter(run__in=[run.pk for run in runs]).order_by("run_id", "number")
    for run_id, value in versions.values_list("run_id", "measurement__speedup"):
        ratios[run_id].append(value)
    return [row_of(run, ratios[run.pk]) for run in runs]


def row_of(run: Run, ratios: Sequence[float | None]) -> RunRow:
    """One row; `ratios` are its versions' speed-ups in order."""
    return RunRow(
        run=run,
        chip=run_chip(run),
        speedup=figures.ratio(run.speedup),
        interval=figures.interval(run.speedup_low, run.speedup_high),
        outcome=outcome_chip(run.outcome),
        spark=spark_of(ratios),
        spend=spend(run),
        per_gain=gains.cost_of_gains(run, ratios),
        took=figures.duration(took(run)),
        at=run.started_at or run.created_at,
    )
