"""Compact tables for a terminal: plain text, aligned, nothing to install."""

from __future__ import annotations

from collections.abc import Sequence

from apps.kernels.profile.names import unit_for

Row = Sequence[str]


def table(rows: Sequence[Row], header: Row | None = None, indent: str = "  ") -> str:
    """Rows as columns, each as wide as its widest cell; the last is not padded."""
    every = [list(header), *map(list, rows)] if header else list(map(list, rows))
    if not every:
        return ""
    columns = max(len(row) for row in every)
    widths = [max((len(row[i]) for row in every if i < len(row)), default=0) for i in range(columns)]
    lines = ["  ".join(cell.ljust(widths[i]) for i, cell in enumerate(row)).rstrip() for row in every]
    if header:
        lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(indent + line for line in lines)


def quantity(value: float | None, unit: str = "") -> str:
    """A number to four digits, large ones with separators; a dash where there is none."""
    if value is None:
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.4g}"
    return f"{text} {unit_for(value, unit)}".rstrip()


def scaled(value: float | None, unit: str) -> str:
    """A count with a decimal prefix: 33.6 MB, 1.07 GFLOP."""
    if value is None:
        return "–"
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:g} {unit}"


def shape(sizes: Sequence[int]) -> str:
    """1024 × 4096, or `scalar`."""
    return " × ".join(map(str, sizes)) or "scalar"
