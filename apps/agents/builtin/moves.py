"""Moves: legal edits of a schedule, each tied to the metrics that ask for it.

Names and thresholds of metrics are those of the profile (docs/profiling.md). The table's order is the prior order, which
is all there is to go by where no profile is taken: first what costs whole multiples (calls, scalar loops, one thread),
then passes over memory, then what is left within the loop, then how bytes are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from apps.agents.builtin.schedule import Schedule
from apps.agents.words import Evidence
from apps.kernels.evaluation import Metric
from apps.kernels.machine import HostReport

Edit = Callable[[Schedule, HostReport], Schedule | None]
MOST_ACCUMULATORS = 8
LARGEST_TILE = 4096
SMALLEST_BLOCK = 2048


@dataclass(frozen=True)
class Test:
    """A metric on one side of a threshold; `than` may name another metric of the same profile."""

    metric: str
    relation: str
    than: float | str

    def evidence(self, metrics: Mapping[str, Metric]) -> Evidence | None:
        """What was measured, where it crosses the threshold; None where it does not or was not measured."""
        found = metrics.get(self.metric)
        other = metrics.get(self.than) if isinstance(self.than, str) else None
        threshold = other.value if other is not None else self.than
        if found is None or isinstance(threshold, str):
            return None
        crossed = found.value > threshold if self.relation == ">" else found.value < threshold
        return Evidence(self.metric, found.value, found.unit, self.relation, threshold) if crossed else None


@dataclass(frozen=True)
class Ask:
    """Tests that must all hold for a profile to ask for a move. The first one is the evidence that leads."""

    tests: tuple[Test, ...]

    def evidence(self, metrics: Mapping[str, Metric]) -> tuple[Evidence, ...]:
        """What was measured, empty where a test does not hold."""
        found = [test.evidence(metrics) for test in self.tests]
        return tuple(one for one in found if one is not None) if all(one is not None for one in found) else ()


@dataclass(frozen=True)
class Effect:
    """The metric that a move should shift besides the time: to at most or at least a share of what it was."""

    metric: str
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Move:
    """One edit. `bottleneck` is the field's term, `change` what is done, `why` what that does to the loop.

    `field` is the choice of the schedule that it is about; other choices may follow from it.
    """

    name: str
    field: str
    bottleneck: str
    change: str
    why: str
    edit: Edit
    asks: tuple[Ask, ...]
    effect: Effect | None = None
    arithmetic: bool = True  # what it saves is work in the loop, not bytes

    def evidence(self, metrics: Mapping[str, Metric]) -> tuple[Evidence, ...]:
        """The measurements that ask for this move; empty where none does."""
        return next((found for ask in self.asks if (found := ask.evidence(metrics))), ())


def _ask(*tests: tuple[str, str, float | str]) -> Ask:
    return Ask(tuple(Test(*test) for test in tests))


def _on(name: str) -> Edit:
    def edit(schedule: Schedule, host: HostReport) -> Schedule | None:
        return None if getattr(schedule, name) else schedule.having(**{name: True})

    return edit


def _on_vectors(name: str) -> Edit:
    """As `_on`, for what can only be written on whole vectors."""

    def edit(schedule: Schedule, host: HostReport) -> Schedule | None:
        return _on(name)(schedule.having(width=schedule.width or _width(host)), host)

    return edit


def _streaming(schedule: Schedule, host: HostReport) -> Schedule | None:
    """As `_on`, where inputs and outputs are more than the last cache holds."""
    last = max((cache.bytes for cache in host.caches), default=0)
    return _on_vectors("streaming")(schedule.having(resident=last), host)


def _width(host: HostReport) -> int:
    """Bits of the vectors to write down: the host's, and 128 where it does not say."""
    return next((bits for bits in (512, 256, 128) if host.vector_bits >= bits), 128)


def _in_line(schedule: Schedule, host: HostReport) -> Schedule | None:
    if schedule.polynomials:
        return None
    return schedule.having(polynomials=True, width=schedule.width or _width(host))


def _vectors(schedule: Schedule, host: HostReport) -> Schedule | None:
    return schedule.having(width=_width(host)) if schedule.width < _width(host) else None


def _narrower(schedule: Schedule, host: HostReport) -> Schedule | None:
    return schedule.having(width=256) if schedule.width == 512 else None


def _split(schedule: Schedule, host: HostReport) -> Schedule | None:
    """Folds with fewer results than four for each core are cut, so that threads end at about the same time."""
    return None if schedule.split else schedule.having(split=4 * max(1, host.cores))


def _more_accumulators(schedule: Schedule, host: HostReport) -> Schedule | None:
    count = 4 if schedule.accumulators < 4 else schedule.accumulators * 2
    width = schedule.width or _width(host)
    return schedule.having(accumulators=count, width=width) if count <= MOST_ACCUMULATORS else None


def _larger_tile(schedule: Schedule, host: HostReport) -> Schedule | None:
    return schedule.having(tile=schedule.tile * 4) if schedule.tile < LARGEST_TILE else None


def _smaller_block(schedule: Schedule, host: HostReport) -> Schedule | None:
    return schedule.having(block=schedule.block // 4) if schedule.block > SMALLEST_BLOCK else None


def _no_threads(schedule: Schedule, host: HostReport) -> Schedule | None:
    return schedule.having(threads=False) if schedule.threads else None


_MEMORY_DECIDES = ("intensity", "<", "ridge")
_BELOW_THE_ROOF = ("share_of_memory_roof", "<", 0.8)

MOVES: tuple[Move, ...] = (
    Move(
        "in-line-functions", "polynomials", "library calls in the loop",
        "Write the elementary functions in line, as polynomials on whole vectors, in place of calls of the mathematics library",
        "a call works on one element, and the compiler can't make vectors of a loop that holds one; a polynomial is a dozen "
        "multiply-adds for all lanes at once",
        _in_line,
        (_ask(("hot_loop_calls", ">", 0.0)), _ask(("math_library_share", ">", 0.2))),
        Effect("hot_loop_calls", 0.0, 0.0, 0.5),
    ),
    Move(
        "vectors", "width", "not vectorised",
        "Write the loop on whole vectors of the width this machine has",
        "the compiler leaves such a loop scalar or takes narrower vectors, because it has to keep the order of a fold and what "
        "NaN does; written on vectors, each instruction takes all lanes",
        _vectors,
        (
            _ask(("hot_loop_vector_bits", "<", 128.0)),
            _ask(("hot_loop_vector_bits", "<", "host_vector_bits"), _BELOW_THE_ROOF),
        ),
        Effect("hot_loop_vector_bits", 4.0, 1.5, 16.0),
    ),
    Move(
        "split-fold", "split", "single thread",
        "Cut the fold into pieces for the threads and combine their results at the end",
        "a fold with few results leaves the other cores idle; pieces of it are independent, and combining them is nothing",
        _split,
        (
            _ask(("parallelism", "<", 1.3), ("host_cores", ">", 1.0), ("call_us", ">", 100.0)),
            _ask(("parallel_efficiency", "<", 0.65), ("call_us", ">", 200.0), _BELOW_THE_ROOF),
        ),
        Effect("parallelism", 2.0, 1.2, 64.0),
    ),
    Move(
        "one-pass-soft-max", "online", "passes over memory",
        "Find the largest element and the sum of exponentials in one pass, rescaling the sum when the largest grows",
        "one pass over each row is saved, for a few more exponentials",
        _on("online"),
        (_ask(("share_of_memory_roof", "<", 0.5), _MEMORY_DECIDES),),
        arithmetic=False,
    ),
    Move(
        "one-pass-moments", "moments", "passes over memory",
        "Find mean and variance in one pass, from the sum and the sum of squares in twice the precision",
        "the second pass over each row falls away; in float64 the difference of the two sums keeps its digits",
        _on("moments"),
        (_ask(("share_of_memory_roof", "<", 0.5), _MEMORY_DECIDES), _ask(_BELOW_THE_ROOF, _MEMORY_DECIDES)),
        arithmetic=False,
    ),
    Move(
        "keep-in-buffer", "keep", "work done twice",
        "Keep what two passes over a row both need in a small buffer between them",
        "the second pass reads a few kilobytes from the nearest cache in place of computing the same values again",
        _on("keep"),
        (_ask(_BELOW_THE_ROOF),),
    ),
    Move(
        "next-row-ahead", "ahead", "memory latency",
        "Ask for the next row while this one is worked on",
        "the passes over a row are work on a cache while memory stands still; asked for in time, the next row comes "
        "meanwhile",
        _on_vectors("ahead"),
        (_ask(_BELOW_THE_ROOF),),
        arithmetic=False,
    ),
    Move(
        "accumulators", "accumulators", "latency chain",
        "Give the fold more accumulators that do not wait for each other",
        "an addition waits four cycles for the one before it although two could start in each; independent ones fill the gap",
        _more_accumulators,
        (_ask(("latency_chain_ratio", ">", 1.5), ("share_of_roof", "<", 0.8)),),
        Effect("latency_chain_ratio", 0.4, 0.0, 0.8),
    ),
    Move(
        "reciprocal", "reciprocals", "division",
        "Divide once for a row and multiply its elements by the reciprocal",
        "a division occupies its unit for as long as eight multiplications do, and the divisor is the same along the row",
        _on("reciprocals"),
        (_ask(("hot_loop_div_sqrt", ">", 0.0), _BELOW_THE_ROOF),),
        Effect("hot_loop_div_sqrt", 0.0, 0.0, 0.6),
    ),
    Move(
        "larger-tile", "tile", "strided access",
        "Let each thread take a longer run along memory while it folds the other axis",
        "short runs use a line or two of each page before they step on, so that the prefetcher starts anew each time; longer "
        "ones are read as a stream and still fit a cache",
        _larger_tile,
        (_ask(_BELOW_THE_ROOF, _MEMORY_DECIDES),),
        arithmetic=False,
    ),
    Move(
        "streaming-stores", "streaming", "write-allocate traffic",
        "Store the output past the caches with non-temporal stores",
        "a plain store first reads the line that it is going to overwrite; the output is written once and not read here, so "
        "that read is spared and the caches keep the input",
        _streaming,
        (
            _ask(("share_of_plain_store_roof", ">", 0.75), ("streaming_gain", ">", 1.1), _MEMORY_DECIDES),
            _ask(("streaming_gain", ">", 1.1), ("share_of_memory_roof", "<", 0.9), _MEMORY_DECIDES),
        ),
        arithmetic=False,
    ),
    Move(
        "smaller-block", "block", "load imbalance",
        "Deal out smaller pieces to the threads",
        "with more pieces than threads by a larger factor the last one to finish keeps the others waiting for less",
        _smaller_block,
        (_ask(("parallel_efficiency", "<", 0.65), ("intensity", ">", "ridge")),),
    ),
    Move(
        "narrower-vectors", "width", "register spills",
        "Use vectors of 256 bits",
        "with less in each register fewer values have to be put on the stack, and some cores run faster on them",
        _narrower,
        (_ask(("hot_loop_spills", ">", 3.0), _BELOW_THE_ROOF),),
        Effect("hot_loop_spills", 0.5, 0.0, 0.9),
    ),
    Move(
        "no-threads", "threads", "call overhead",
        "Do the work on the calling thread",
        "so little is to be done that waking the other threads costs more than they bring",
        _no_threads,
        (_ask(("call_overhead_share", ">", 0.5)),),
        arithmetic=False,
    ),
)  # fmt: skip


def move_named(name: str) -> Move | None:
    """The move of that name, None where there is none (any more)."""
    return next((move for move in MOVES if move.name == name), None)


def edits(schedule: Schedule, host: HostReport) -> Iterator[tuple[Move, Schedule]]:
    """Every move that changes this schedule, with the schedule after it, in the prior order."""
    for move in MOVES:
        after = move.edit(schedule, host)
        if after is not None and after != schedule:
            yield move, after
