"""Three versions and more of a problem beside each other: one column each, every figure held against the first one's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.agents import profiler
from apps.kernels.evaluation import Evaluation
from apps.runs.models import Version
from apps.runs.presentation import comparison, figures, metrics, version_page
from apps.runs.presentation.measured import Measured
from apps.runs.presentation.states import Chip

MOST = 12


@dataclass(frozen=True)
class Column:
    """One version: its key in addresses, and how it stands against the first column in words."""

    key: str
    name: str
    measured: Measured
    chip: Chip
    against_first: str


@dataclass(frozen=True)
class Cell:
    """One figure. `change` is against the first column; `tone` only where the change is beyond noise and has a direction."""

    value: str
    change: str = ""
    tone: str = ""
    beyond_noise: bool | None = None
    leads: bool = False


@dataclass(frozen=True)
class Row:
    """One figure of all versions."""

    label: str
    better: str
    cells: tuple[Cell, ...]
    differs: bool = True


def columns(keys: Sequence[str]) -> list[Column]:
    """The versions that the keys name, in their order, of the first one's problem; what is not there is left out."""
    found: list[Version] = []
    for key in dict.fromkeys(keys):
        version = comparison.find(key)
        if version is not None and (not found or version.run.problem_id == found[0].run.problem_id):
            found.append(version)
    sides = [comparison.side(version, version) for version in found[:MOST]]
    return [
        Column(side.key, side.name, one, one.chip, "" if side is sides[0] else comparison.verdict(sides[0], side))
        for side in sides
        if (one := side.measured) is not None
    ]


def figures_of(shown: Sequence[Column]) -> list[Row]:
    """Speed-up and every metric that any of them has."""
    if not shown:
        return []
    evaluations = [column.measured.evaluation for column in shown]
    by_version = [{row.name: row for row in metrics.rows_against(evaluations[0], one)} for one in evaluations]
    names = dict.fromkeys(name for rows in by_version for name in rows)
    return [_speedups(shown), *(_metric(name, evaluations, by_version) for name in names)]


def environment_of(shown: Sequence[Column]) -> list[Row]:
    """Where each was measured; only what differs between any two."""
    told = [dict(version_page.environment(column.measured.evaluation)) for column in shown]
    rows = []
    for name in dict.fromkeys(name for one in told for name in one):
        words = [one.get(name, figures.NOT_KNOWN) for one in told]
        if len({*words} - {figures.NOT_KNOWN}) > 1 and not name.startswith("seconds"):
            rows.append(Row(name, "", tuple(Cell(word) for word in words)))
    return rows


def _speedups(shown: Sequence[Column]) -> Row:
    top = max((column.measured.ratio or 0.0 for column in shown), default=0.0)
    cells = [
        Cell(
            f"{column.measured.speedup} {column.measured.interval}".strip()
            if column.measured.ratio
            else column.chip.word,
            leads=bool(top) and column.measured.ratio == top,
        )
        for column in shown
    ]
    return Row("speed-up over eager", "more", tuple(cells))


def _metric(
    name: str, evaluations: Sequence[Evaluation | None], by_version: Sequence[dict[str, metrics.MetricRow]]
) -> Row:
    values = [profiler.metrics(one).get(name) if one is not None else None for one in evaluations]
    known = [value.value for value in values if value is not None]
    merit = metrics.better_when(name)
    best = (max(known) if merit > 0 else min(known)) if merit and len(set(known)) > 1 else None
    cells = []
    for place, (value, rows) in enumerate(zip(values, by_version, strict=True)):
        row = rows.get(name)
        text = figures.with_unit(value.value, value.unit) if value is not None else figures.NOT_KNOWN
        leads = best is not None and value is not None and value.value == best
        if place == 0 or row is None or not row.change:
            cells.append(Cell(text, leads=leads))
        else:
            cells.append(Cell(text, row.change, row.tone, row.beyond_noise, leads))
    better = {1: "more", -1: "less", 0: ""}[merit]
    return Row(
        metrics.label_of(name), better, tuple(cells), len({cell.value for cell in cells} - {figures.NOT_KNOWN}) > 1
    )
