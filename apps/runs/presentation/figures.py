"""Figures as people read them: speed-ups, times, sizes, rates, money. Every function takes None for "not known"."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from apps.kernels.profile.names import unit_for

NOT_KNOWN = "–"
_SI = ("", "K", "M", "G", "T", "P")


def significant(value: float | None, digits: int = 3) -> str:
    """`value` with so many significant digits and no exponent between 1e-4 and 1e6."""
    if value is None or not math.isfinite(value):
        return NOT_KNOWN if value is None or math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if size < -4 or size >= 6:
        return f"{value:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e")
    text = f"{value:.{max(0, digits - 1 - size)}f}"
    return text.rstrip("0").rstrip(".") if "." in text and abs(value) >= 10 ** (digits - 1) else text


def ratio(value: float | None) -> str:
    """A speed-up: `4.52×`, `12.3×`, `0.94×`."""
    if value is None:
        return NOT_KNOWN
    return f"{value:.0f}×" if value >= 100 else f"{value:.1f}×" if value >= 10 else f"{value:.2f}×"


def interval(low: float | None, high: float | None) -> str:
    """The interval beside a speed-up: `[4.41 – 4.63]`, empty where none is known."""
    if low is None or high is None:
        return ""
    digits = 1 if high >= 10 else 2
    return f"[{low:.{digits}f} – {high:.{digits}f}]"


def speedup(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """A speed-up with its interval: `4.52× [4.41 – 4.63]`."""
    return f"{ratio(value)} {interval(low, high)}".strip()


def milliseconds(value: float | None) -> str:
    """A time given in milliseconds, in the unit that reads best."""
    if value is None:
        return NOT_KNOWN
    if value < 1e-3:
        return f"{significant(value * 1e6)} ns"
    if value < 1:
        return f"{significant(value * 1e3)} µs"
    return f"{significant(value)} ms" if value < 1e3 else f"{significant(value / 1e3)} s"


def duration(seconds: float | None) -> str:
    """A length of work: `0.8 s`, `42 s`, `1:42`, `2:03:10`."""
    if seconds is None:
        return NOT_KNOWN
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def size(count: float | None) -> str:
    """Bytes in powers of 1024, the way working sets and caches are spoken of, and so named: `12.0 MiB`."""
    if count is None:
        return NOT_KNOWN
    amount, unit = float(count), 0
    while abs(amount) >= 1024 and unit < len(_SI) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.0f} B" if unit == 0 else f"{significant(amount)} {_SI[unit]}iB"


def count(value: float | None, unit: str = "") -> str:
    """A large count in powers of 1000: `25.2 M`, with its unit `25.2 MFLOP`."""
    if value is None:
        return NOT_KNOWN
    amount, step = float(value), 0
    while abs(amount) >= 1000 and step < len(_SI) - 1:
        amount, step = amount / 1000, step + 1
    digits = f"{amount:.0f}" if step == 0 and amount == int(amount) else significant(amount)
    return f"{digits} {_SI[step]}{unit}".rstrip()


def percent(part: float | None) -> str:
    """A share between 0 and 1 as `90 %`."""
    if part is None:
        return NOT_KNOWN
    return f"{part * 100:.1f} %" if 0 < abs(part) < 0.1 else f"{part * 100:.0f} %"


def money(amount: Decimal | float | None, unknown: bool = False) -> str:
    """Dollars; `unknown` says that a price was missing, which is never shown as nothing."""
    if unknown:
        return f"over ${amount:.2f}, prices unknown" if amount else "unknown"
    if amount is None:
        return NOT_KNOWN
    if amount == 0:
        return "none"
    return f"${amount:.4f}" if amount < Decimal("0.01") else f"${amount:.2f}"


def with_unit(value: float | None, unit: str) -> str:
    """A metric's value with its unit, each unit in the form its readers know."""
    if value is None:
        return NOT_KNOWN
    match unit:
        case "B" | "bytes" | "byte":
            return size(value)
        case "share" | "fraction":
            return percent(value)
        case "%":
            return percent(value / 100)
        case "ms":
            return milliseconds(value)
        case "us" | "µs":
            return milliseconds(value / 1e3)
        case "s":
            return duration(value) if value >= 1 else milliseconds(value * 1e3)
        case "x" | "×" | "ratio":
            return ratio(value)
        case "FLOP" | "FLOPs":
            return count(value, "FLOP")
        case "" | "1" | "count":
            return _counted(value)
    return f"{_counted(value)} {unit_for(value, unit)}"


def sizing(overrides: Mapping[str, object]) -> str:
    """`batch_size=2, dim=64`: the sizes that differ from the source's; empty where none does."""
    return ", ".join(f"{name}={value}" for name, value in overrides.items())


def _counted(value: float) -> str:
    if abs(value) >= 1e5:
        return count(value)
    return f"{value:.0f}" if value == int(value) else significant(value)
