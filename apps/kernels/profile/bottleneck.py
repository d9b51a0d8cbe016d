"""From metrics to what holds a kernel back: a table of causes with their thresholds, read from the top.

The order is that of what must go first: time that is no computing at all, then passes that need not be, then ceilings
that have been reached, then the loop itself, then threads. A rule fires where its own metric crosses its threshold and
all its conditions hold; a metric that was not measured fires and holds nothing. Thresholds without another source were
set on kernels with one planted defect each (tests/profile).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from apps.kernels.evaluation import Bottleneck


class Cause(StrEnum):
    """What can hold a kernel back, `AT_THE_ROOF`, `AT_THE_PEAK` and `NOTHING_FOUND` included."""

    PAGE_FAULTS = "page faults"
    SYSTEM_TIME = "system time"
    CALL_OVERHEAD = "call overhead"
    PASSES = "passes over memory"
    AT_THE_ROOF = "at the memory roof"
    WRITE_ALLOCATE = "write-allocate traffic"
    AT_THE_PEAK = "at the arithmetic peak"
    CALLS = "library calls in the loop"
    GATHER = "gather"
    STRIDES = "strided access"
    LATENCY_CHAIN = "latency chain"
    SCALAR = "not vectorised"
    DIVISION = "division"
    ONE_THREAD = "single thread"
    IMBALANCE = "load imbalance"
    TRAFFIC = "more traffic than compulsory"
    NARROW = "narrow vectors"
    NOTHING_FOUND = "nothing found"


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
}  # fmt: skip


@dataclass(frozen=True)
class Condition:
    """`metric` compared with a number, or with another metric's value where `than` is a name."""

    metric: str
    how: str
    than: float | str

    def threshold(self, metrics: Mapping[str, float]) -> float | None:
        """The number compared with, None where it is a metric that was not measured."""
        return metrics.get(self.than) if isinstance(self.than, str) else self.than

    def holds(self, metrics: Mapping[str, float]) -> bool:
        """False where either side was not measured."""
        value, threshold = metrics.get(self.metric), self.threshold(metrics)
        return value is not None and threshold is not None and _COMPARE[self.how](value, threshold)


@dataclass(frozen=True)
class Rule:
    """One row: the cause, the condition that shows it, others that must hold too, what it means and what to do."""

    cause: Cause
    shown_by: Condition
    given: tuple[Condition, ...]
    explanation: str


def _when(metric: str, how: str, than: float | str) -> Condition:
    return Condition(metric, how, than)


_MEMORY_BOUND = _when("intensity", "<", "ridge")
_COMPUTE_BOUND = _when("intensity", ">=", "ridge")
# Under a fifth of a millisecond, starting threads costs as much as they bring.
_LONG_ENOUGH = _when("call_us", ">", 200.0)

RULES: tuple[Rule, ...] = (
    Rule(
        Cause.PAGE_FAULTS, _when("minor_faults_per_call", ">", 100), (_when("page_fault_share", ">", 0.05),),
        "Each call touches fresh pages, and the system clears every one of them. Allocate scratch once in prepare(), "
        "fuse so that large temporaries vanish, and leave large outputs to the caller's allocator.",
    ),
    Rule(
        Cause.SYSTEM_TIME, _when("system_time_share", ">", 0.10), (_when("page_fault_share", "<=", 0.05),),
        "The operating system takes part of every call: allocation that goes back to the system, or threads that sleep "
        "and wake. Keep buffers, and use one parallel region for a call.",
    ),
    Rule(
        Cause.CALL_OVERHEAD, _when("call_overhead_share", ">=", 0.5), (),
        "Most of the time is the call itself: Python, allocating the output, waking threads. Fewer parallel regions, "
        "or none for so little work, are all that is left to gain.",
    ),
    Rule(
        Cause.PASSES, _when("torch_operations_per_call", ">=", 2), (_MEMORY_BOUND,),
        "Several Torch operations each read and write the whole of their operands, while arithmetic is cheap here. Fuse "
        "them into one kernel that reads inputs once and writes the output once.",
    ),
    Rule(
        Cause.AT_THE_ROOF, _when("share_of_memory_roof", ">=", 0.80), (_MEMORY_BOUND,),
        "It moves its compulsory bytes nearly as fast as this machine can. Nothing is to be gained but by moving fewer.",
    ),
    Rule(
        Cause.WRITE_ALLOCATE, _when("share_of_plain_store_roof", ">=", 0.75),
        (_MEMORY_BOUND, _when("streaming_gain", ">", 1.10), _when("hot_loop_nt_stores", "<=", 0)),
        "It is at the roof for plain stores, which read each line before they write it. The output is too large to be "
        "kept in cache: non-temporal stores save that read.",
    ),
    Rule(
        Cause.AT_THE_PEAK, _when("share_of_arithmetic_peak", ">=", 0.70), (),
        "It computes nearly as fast as this machine can; libraries reach no more. Only algebra that removes work, or "
        "fusing what surrounds it, is left to gain.",
    ),
    Rule(
        Cause.CALLS, _when("hot_loop_calls", ">=", 1), (),
        "The hot loop calls a function for each element, which also keeps it from being vectorised. Write exp, tanh, erf "
        "and the like in line as polynomials on vectors.",
    ),
    Rule(
        Cause.CALLS, _when("math_library_share", ">", 0.20), (_when("hot_loop_vector_math_calls", "<=", 0),),
        "Much of the time is spent in the mathematics library. Write exp, tanh, erf and the like in line as polynomials.",
    ),
    Rule(
        Cause.GATHER, _when("hot_loop_indirect_loads", ">=", 1), (),
        "The hot loop loads from addresses that it has loaded before. Each element costs a cache line and waits for its "
        "index: change the layout, or sort the work by address.",
    ),
    Rule(
        Cause.STRIDES, _when("hot_loop_strided_loads", ">=", 1), (_MEMORY_BOUND, _when("share_of_memory_roof", "<", 0.5)),
        "The hot loop steps over most of each cache line it loads. Exchange loops so that the innermost runs along "
        "memory, or tile so that a line is used up while it is in cache.",
    ),
    Rule(
        Cause.LATENCY_CHAIN, _when("latency_chain_ratio", ">=", 2), (_when("share_of_roof", "<", 0.5),),
        "Each iteration waits for the one before it. Give a reduction 4 to 8 independent accumulators (an omp simd "
        "reduction and unrolling do), or compute a recurrence in blocks.",
    ),
    Rule(
        Cause.SCALAR, _when("hot_loop_vector_bits", "<", 128), (),
        "The hot loop works on one element at a time. See the compiler's remarks: __restrict, omp simd with a reduction, "
        "ternaries in place of std::min and std::max, no branches.",
    ),
    Rule(
        Cause.DIVISION, _when("hot_loop_div_sqrt", ">=", 1), (_when("share_of_memory_roof", "<", 0.8),),
        "A division or square root takes several times as long as a multiplication and is not pipelined well. Hoist the "
        "reciprocal where the divisor does not change, or use an approximation with a Newton step.",
    ),
    Rule(
        Cause.ONE_THREAD, _when("parallelism", "<", 1.3), (_when("host_cores", ">", 1), _LONG_ENOUGH),
        "Only one processor works. Put an omp parallel for over the outermost loop with enough iterations.",
    ),
    Rule(
        Cause.IMBALANCE, _when("parallel_efficiency", "<", 0.65), (_COMPUTE_BOUND, _LONG_ENOUGH),
        "More threads bring too little although arithmetic decides: some wait for others. Collapse loops, make chunks "
        "smaller, keep serial parts out of the call.",
    ),
    Rule(
        Cause.TRAFFIC, _when("share_of_memory_roof", "<", 0.5), (_MEMORY_BOUND, _LONG_ENOUGH),
        "Memory decides, yet less than half of the roof is reached with compulsory bytes: more is moved than need be, or "
        "too few loads are under way. Tile so that a second pass finds its data in L2, and read along memory.",
    ),
    Rule(
        Cause.NARROW, _when("hot_loop_vector_bits", "<", "host_vector_bits"), (_COMPUTE_BOUND,),
        "The hot loop uses narrower vectors than this machine has. -mprefer-vector-width=512 or explicit vectors widen it.",
    ),
)  # fmt: skip


def bottlenecks(metrics: Mapping[str, float]) -> tuple[Bottleneck, ...]:
    """All causes that the metrics show, the first to deal with first; `NOTHING_FOUND` alone where they show none."""
    found = []
    for rule in RULES:
        threshold = rule.shown_by.threshold(metrics)
        if threshold is None or not rule.shown_by.holds(metrics):
            continue
        if all(condition.holds(metrics) for condition in rule.given):
            value = metrics[rule.shown_by.metric]
            found.append(Bottleneck(rule.cause.value, rule.shown_by.metric, value, threshold, rule.explanation))
    return tuple(found) or (_nothing_found(metrics),)


def bottleneck(metrics: Mapping[str, float]) -> Bottleneck:
    """The cause to deal with first."""
    return bottlenecks(metrics)[0]


def _nothing_found(metrics: Mapping[str, float]) -> Bottleneck:
    share = metrics.get("share_of_roof", 0.0)
    return Bottleneck(
        Cause.NOTHING_FOUND.value, "share_of_roof", share, 0.8,
        f"No single cause stands out; the kernel is at {share:.0%} of its roof." if share else
        "No single cause stands out, and without bytes, FLOPs or ceilings its roof is not known.",
    )  # fmt: skip
