"""Metrics side by side: value, value, change, which way is better, and whether the change is beyond noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from apps.agents import profiler
from apps.kernels.evaluation import Evaluation, Metric, Time
from apps.runs.presentation import figures

# A change in a figure that stands still between two builds is a change; one read off the operating system while a kernel
# ran scatters, on machines like ours by up to a tenth between two runs of the same binary.
_EXACT_SOURCES = ("disassembly", "compiler", "model", "prediction", "facts", "llvm-mca", "remarks")
_TIMED_SOURCES = ("timing", "time", "roof")
_SAMPLED_NOISE = 0.10
_LEAST_NOISE = 0.01  # the smallest margin the judge itself allows

_DOWN_IS_BETTER = (
    "time", "fault", "switch", "miss", "stall", "scalar", "call", "spill", "cycles", "latency", "instructions_per",
    "passes", "traffic", "setup", "bound", "seconds", "gather", "division",
)  # fmt: skip
_UP_IS_BETTER = (
    "bandwidth", "gflops", "roof", "vector", "scaling", "ipc", "hit", "speedup", "speed_up", "share_of_peak",
    "utilisation", "occupancy", "retiring",
)  # fmt: skip


@dataclass(frozen=True)
class MetricRow:
    """One metric of one or two versions. `tone` is good, bad or empty; `beyond_noise` is None without two values."""

    label: str
    name: str
    before: str
    after: str
    change: str
    sign: str
    tone: str
    beyond_noise: bool | None
    source: str
    why_noise: str = ""


def label_of(name: str) -> str:
    """A metric's name as people read it."""
    return name.replace("_", " ").replace("gflops", "GFLOP/s").replace("cpu", "CPU").replace("ipc", "IPC")


def better_when(name: str) -> int:
    """+1 where more is better, -1 where less is, 0 where neither (a fact, not a merit)."""
    lowered = name.lower()
    if any(word in lowered for word in _UP_IS_BETTER):
        return 1
    return -1 if any(word in lowered for word in _DOWN_IS_BETTER) else 0


def rows_against(before: Evaluation | None, after: Evaluation | None) -> list[MetricRow]:
    """Every metric either evaluation has, the later one's order first."""
    earlier = profiler.metrics(before) if before else {}
    later = profiler.metrics(after) if after else {}
    names = [profiler.TIME] if profiler.TIME in later or profiler.TIME in earlier else []
    names += [name for name in [*later, *earlier] if name not in (profiler.TIME, profiler.TIME_OVER_REFERENCE)]
    spread = math.hypot(_spread(before), _spread(after))
    return [_row(name, earlier.get(name), later.get(name), spread) for name in dict.fromkeys(names)]


def _row(name: str, before: Metric | None, after: Metric | None, spread: float) -> MetricRow:
    shown = after or before
    assert shown is not None
    change, beyond, why = "", None, ""
    if before is not None and after is not None:
        noise = _noise(shown, spread)
        change = change_text(before.value, after.value, shown.unit)
        beyond = _differs(before.value, after.value, noise)
        why = "exact: any change counts" if not noise else f"changes under {figures.percent(noise)} are within noise"
    rises = before is not None and after is not None and after.value > before.value
    merit = better_when(name) * (1 if rises else -1) if beyond else 0
    return MetricRow(
        label=label_of(name),
        name=name,
        before=figures.with_unit(before.value, before.unit) if before else figures.NOT_KNOWN,
        after=figures.with_unit(after.value, after.unit) if after else figures.NOT_KNOWN,
        change=change,
        sign=("▲" if rises else "▼") if beyond else "≈" if beyond is False else "",
        tone={1: "good", -1: "bad", 0: ""}[merit],
        beyond_noise=beyond,
        source=shown.source,
        why_noise=why,
    )


def change_text(before: float, after: float, unit: str) -> str:
    """`+42 %`, for shares `+27 pt`, for doublings and more `2.1×`."""
    if unit in ("share", "fraction", "%"):
        points = (after - before) * (1 if unit == "%" else 100)
        return f"{points:+.0f} pt".replace("-", "−")
    if before == 0 or (before < 0) != (after < 0):
        return f"{after - before:+.3g}".replace("-", "−")
    ratio = after / before
    if ratio >= 2 or ratio <= 0.5:
        return figures.ratio(ratio)
    return f"{(ratio - 1) * 100:+.{1 if abs(ratio - 1) < 0.1 else 0}f} %".replace("-", "−")


def _differs(before: float, after: float, noise: float) -> bool:
    size = max(abs(before), abs(after))
    return size > 0 and abs(after - before) > noise * size


def _noise(metric: Metric, spread: float) -> float:
    """The relative change below which two values of this metric can't be told apart."""
    source = metric.source.lower()
    if metric.name == profiler.TIME or any(word in source for word in _TIMED_SOURCES):
        return max(spread, _LEAST_NOISE)
    if metric.unit == "bit" or any(word in source for word in _EXACT_SOURCES):
        return 0.0
    return _SAMPLED_NOISE


def _spread(evaluation: Evaluation | None) -> float:
    """Half the relative width of the candidate's 95 % interval."""
    time: Time | None = evaluation.timing.candidate if evaluation else None
    return (time.ci95_ms[1] - time.ci95_ms[0]) / 2 / time.median_ms if time and time.median_ms else 0.0
