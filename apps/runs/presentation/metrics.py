"""Metrics side by side: value, value, change, which way is better, and whether the change is beyond noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

from apps.agents import profiler
from apps.kernels.evaluation import Evaluation, Metric, Time
from apps.runs.presentation import figures

# Names are those of apps/kernels/profile/names.py. What is in neither set is a fact, not a merit.
_MORE_IS_BETTER = {
    "scaling", "parallel_efficiency", "parallelism", "achieved_bandwidth", "achieved_arithmetic",
    "share_of_memory_roof", "share_of_plain_store_roof", "share_of_arithmetic_peak", "share_of_roof",
    "own_code_share", "hot_loop_vector_bits", "ipc", "topdown_retiring",
}  # fmt: skip
_LESS_IS_BETTER = {
    "time", "time_over_reference", "call_us", "call_us_one_thread", "busiest_thread_share", "call_overhead_share",
    "minor_faults_per_call", "page_fault_share", "system_time_share", "involuntary_switches_per_call",
    "torch_operations_per_call", "torch_bytes_per_call", "math_library_share", "kernel_mode_share",
    "hot_loop_div_sqrt", "hot_loop_calls",
    "hot_loop_spills", "hot_loop_strided_loads", "hot_loop_indirect_loads", "hot_loop_recurrence_cycles",
    "latency_chain_ratio", "loops_not_vectorised", "cycles", "cache_miss_share", "cache_misses_per_kilo_instruction",
    "branch_miss_share", "dtlb_load_misses", "topdown_bad_speculation", "topdown_frontend_bound",
    "topdown_backend_bound",
}  # fmt: skip
_ASKED_FOR = {
    "time", "achieved_bandwidth", "share_of_memory_roof", "achieved_arithmetic", "share_of_roof", "scaling",
    "minor_faults_per_call", "system_time_share", "hot_loop_vector_bits",
}  # fmt: skip
# What problem and machine give: the same on both sides of most comparisons, and then left out of them.
_GIVEN = {
    "compulsory_bytes", "read_bytes", "written_bytes", "flops", "intensity", "ridge", "memory_roof",
    "plain_store_roof", "arithmetic_peak", "streaming_gain", "host_vector_bits", "host_cores",
    "reference_torch_operations_per_call", "reference_torch_bytes_per_call",
}  # fmt: skip
# Derived from the time of a call, so they scatter as it does.
_OF_TIME = {
    "time", "call_us", "achieved_bandwidth", "achieved_arithmetic", "share_of_memory_roof",
    "share_of_plain_store_roof", "share_of_arithmetic_peak", "share_of_roof",
}  # fmt: skip
_EXACT_SOURCES = ("disassembly", "model", "llvm-mca", "problem", "remarks")
# Read off the operating system while a kernel ran: on machines like ours two runs of one binary differ by up to a tenth.
_SAMPLED_NOISE = 0.10
_LEAST_NOISE = 0.01  # the smallest margin the judge itself allows
_LABELS = {
    "call_us": "a call, while profiled",
    "call_us_one_thread": "a call on one thread",
    "scaling": "scaling, one thread to all",
    "hot_loop_fma": "hot loop FMA",
    "hot_loop_nt_stores": "hot loop non-temporal stores",
    "ipc": "instructions per cycle",
    "dtlb_load_misses": "dTLB load misses",
}


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
    better: str = ""  # more, less, or empty for a fact that is no merit


def label_of(name: str) -> str:
    """A metric's name as people read it."""
    return _LABELS.get(name, name.replace("_", " "))


def better_when(name: str) -> int:
    """+1 where more is better, -1 where less is, 0 where neither (a fact, not a merit)."""
    return (name in _MORE_IS_BETTER) - (name in _LESS_IS_BETTER)


def rows_against(before: Evaluation | None, after: Evaluation | None) -> list[MetricRow]:
    """Every metric either evaluation has, time first; what is given and the same on both sides is left out."""
    earlier = profiler.metrics(before) if before else {}
    later = profiler.metrics(after) if after else {}
    known = dict.fromkeys([profiler.TIME, *later, *earlier])
    spread = math.hypot(_spread(before), _spread(after))
    return [
        _row(name, earlier.get(name), later.get(name), spread)
        for name in known
        if (name in earlier or name in later)
        and name != profiler.TIME_OVER_REFERENCE
        and not (name == "call_us" and profiler.TIME in known)
        and not (name in _GIVEN and before and after and _same(earlier.get(name), later.get(name)))
    ]


def at_a_glance(rows: list[MetricRow]) -> tuple[list[MetricRow], list[MetricRow]]:
    """What to show under pressure, and the rest: the figures everyone asks for, and whatever got better or worse."""
    first = [row for row in rows if row.name in _ASKED_FOR or row.tone]
    return first, [row for row in rows if row not in first]


def _same(one: Metric | None, other: Metric | None) -> bool:
    return one is not None and other is not None and not _differs(one.value, other.value, _LEAST_NOISE)


def _row(name: str, before: Metric | None, after: Metric | None, spread: float) -> MetricRow:
    shown = after or before
    assert shown is not None
    change, beyond, why = "", None, ""
    if before is not None and after is not None:
        noise = _noise(shown, spread)
        change = "same" if before.value == after.value else change_text(before.value, after.value, shown.unit)
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
        better={1: "more", -1: "less", 0: ""}[better_when(name)],
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
    if metric.name in _OF_TIME:
        return max(spread, _LEAST_NOISE)
    if metric.name in _GIVEN or any(word in metric.source for word in _EXACT_SOURCES):
        return 0.0
    return _SAMPLED_NOISE


def _spread(evaluation: Evaluation | None) -> float:
    """Half the relative width of the candidate's 95 % interval."""
    time: Time | None = evaluation.timing.candidate if evaluation else None
    return (time.ci95_ms[1] - time.ci95_ms[0]) / 2 / time.median_ms if time and time.median_ms else 0.0
