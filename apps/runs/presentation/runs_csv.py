"""The list of runs as CSV: figures as numbers, times as ISO 8601, and no text that a spreadsheet would take for a formula."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator

from apps.runs import wire
from apps.runs.models import Run
from apps.runs.presentation import figures
from apps.runs.presentation.runs_table import took

HEADINGS = (
    "run", "state", "problem", "sizes", "language", "policy", "device", "coder", "profile", "iterations", "candidates",
    "speedup", "speedup_low", "speedup_high", "torch_compile_speedup", "outcome", "seconds", "tokens_in", "tokens_out",
    "cost_usd", "cost", "tags", "notes", "owner", "created_at", "started_at", "finished_at", "imported", "reason",
)  # fmt: skip


class _Line:
    """What `csv.writer` writes to: gives each line back."""

    def write(self, text: str) -> str:
        return text


def lines(runs: Iterable[Run]) -> Iterator[str]:
    """A heading, then a line a run."""
    writer = csv.writer(_Line())
    yield str(writer.writerow(HEADINGS))
    for run in runs:
        yield str(writer.writerow([_cell(value) for value in _values(run)]))


def _values(run: Run) -> tuple[object, ...]:
    cost = "unknown" if run.cost_unknown else "estimated" if run.cost_estimated else "known"
    return (
        run.pk, "lost" if run.is_lost else run.state, run.problem.slug,
        figures.sizing(run.sizing.overrides), run.language, run.policy,
        str(run.device), run.coder, "on" if run.profile else "off", run.iteration, run.candidates, run.speedup,
        run.speedup_low, run.speedup_high, run.compiled_speedup, run.outcome, took(run), run.tokens_in, run.tokens_out,
        run.cost_usd, cost, run.tags.strip(), run.notes, str(run.owner or ""), wire.instant(run.created_at),
        wire.instant(run.started_at), wire.instant(run.finished_at), "yes" if run.imported else "no", run.reason,
    )  # fmt: skip


def _cell(value: object) -> object:
    """Texts that begin as formulas do get an apostrophe, which spreadsheets hide."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value
