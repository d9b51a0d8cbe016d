"""What a kernel should take on a host: arithmetic, calls, waiting and bytes over the measured ceilings.

Good for ratios between two schedules of one problem, within some tens of per cent; what was measured corrects it
(`Cost.scaled_to`). The counts of work per operation are those of `scalars`; latencies are those of current x86-64 cores.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from apps.agents.builtin.form import SIZES, Const, Expr, Fold, Load, Op, Position, Scan, scans_read
from apps.agents.builtin.index import Axis
from apps.agents.builtin.nest import Accumulate, Folds, For, Kernel, Par, Running, Statement, Store, Vec, statements_in
from apps.agents.builtin.processor import Processor
from apps.agents.builtin.scalars import SCALARS
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.traffic import Traffic, traffic_of
from apps.kernels.machine import HostReport

# Of what takes less time, arithmetic or memory, this share is not hidden behind the other: little in one pass; more where
# rows are worked on in several passes, unless the next row is asked for ahead (soft-max, measured).
NOT_HIDDEN, NOT_HIDDEN_OF_ROWS = 0.2, 0.7
# Python's call, allocation of the output, pointers through ctypes.
CALL_SECONDS = 12e-6
SCALAR_A_CYCLE = 3.0
# Cycles from one vector of a scan to the next: its combination, and its last lane spread over all.
SCAN_LATENCY = 8.0
# Of the peak that a product of the library reaches (MKL, measured).
LIBRARY_SHARE = 0.77
COMPILER_BITS = 256  # the width GCC prefers by itself
# Cycles of a call of the mathematics library for each of the instructions that `scalars` counts.
CYCLES_OF_LIBRARY = 0.7
LANE_IN_AND_OUT = 3.0
_ONE_INSTRUCTION = frozenset({"floor", "ceil", "trunc", "round"})
# Cycles from one combination to the next that depends on it, and instructions of one combination.
_LATENCY = {"sum": 4.0, "product": 4.0, "max": 6.0, "min": 6.0, "any": 1.0, "all": 1.0, "argmax": 6.0, "argmin": 6.0,
            "max_sum": 60.0}  # fmt: skip
_COMBINE = {"sum": 1.0, "product": 1.0, "max": 3.0, "min": 3.0, "any": 1.0, "all": 1.0, "argmax": 4.0, "argmin": 4.0,
            "max_sum": 40.0}  # fmt: skip
_REGISTERS = 16  # accumulators that stay in registers beside what a loop computes with


@dataclass(frozen=True)
class Cost:
    """Seconds of one call by what they go to. `arithmetic`, `calls` and `waiting` follow each other; memory overlaps.

    `library` is for products that are left to the library, before or between the kernel's own work; `not_hidden` the share
    of what takes less time, computing or memory, that is not hidden behind the other.
    """

    arithmetic: float
    calls: float
    waiting: float
    memory: float
    overhead: float
    library: float
    not_hidden: float
    threads: float
    main_bytes: float
    cache_bytes: float

    @property
    def computing(self) -> float:
        """All that keeps the cores' units busy or waiting for each other."""
        return self.arithmetic + self.calls + self.waiting

    @property
    def seconds(self) -> float:
        """The predicted time of a call."""
        longer, shorter = max(self.computing, self.memory), min(self.computing, self.memory)
        return self.overhead + self.library + longer + self.not_hidden * shorter

    @property
    def limit(self) -> str:
        """The term that decides, in words of the field."""
        if max(self.overhead, self.library) > max(self.computing, self.memory):
            return "call overhead" if self.overhead > self.library else "the library's products"
        if self.memory >= self.computing:
            return "memory traffic"
        names = {"library calls": self.calls, "a latency chain": self.waiting, "arithmetic": self.arithmetic}
        return max(names, key=lambda name: names[name])

    def scaled_to(self, seconds: float, *, computing: bool) -> Scale:
        """What makes the prediction meet a measured time: `computing` blames the arithmetic alone, else all alike."""
        body = max(seconds - self.overhead - self.library, 0.05 * seconds)
        if computing and self.computing > 0:
            hidden = body - self.not_hidden * self.memory
            return Scale(max(0.1, hidden / self.computing), 1.0)
        predicted = max(self.seconds - self.overhead - self.library, 1e-12)
        return Scale(body / predicted, body / predicted)

    def scaled(self, scale: Scale) -> Cost:
        """With its terms corrected."""
        c = scale.computing
        return replace(
            self,
            arithmetic=self.arithmetic * c,
            calls=self.calls * c,
            waiting=self.waiting * c,
            memory=self.memory * scale.memory,
        )


@dataclass(frozen=True)
class Scale:
    """Factors between predicted and measured terms."""

    computing: float
    memory: float


def cost_of(kernel: Kernel, schedule: Schedule, host: HostReport) -> Cost:
    """The cost of one call of a kernel that was lowered under this schedule."""
    processor = Processor.of(host)
    parts = [_part(statement, kernel, schedule, processor) for statement in kernel.everything]
    busy = sum(part.computing + part.memory for part in parts) or 1.0
    return Cost(
        arithmetic=sum(part.arithmetic for part in parts),
        calls=sum(part.calls for part in parts),
        waiting=sum(part.waiting for part in parts),
        memory=sum(part.memory for part in parts),
        overhead=CALL_SECONDS + sum(part.overhead for part in parts),
        library=kernel.library_flops / (LIBRARY_SHARE * processor.flops_a_second),
        not_hidden=sum(part.not_hidden * (part.computing + part.memory) for part in parts) / busy,
        threads=sum(part.threads * (part.computing + part.memory) for part in parts) / busy,
        main_bytes=sum(part.main_bytes for part in parts),
        cache_bytes=sum(part.cache_bytes for part in parts),
    )


def _part(statement: Statement, kernel: Kernel, schedule: Schedule, processor: Processor) -> Cost:
    """One statement outside of all loops: a parallel region, or serial code."""
    threads = 1
    balance = 1.0
    if isinstance(statement, Par) and statement.threads:
        threads = min(processor.cores, statement.count)
        balance = math.ceil(statement.count / threads) * threads / statement.count
    work = _Work(schedule, processor)
    work.statement(statement, 1.0, frozenset())
    kept = [buffer for folds in statements_in(statement) if isinstance(folds, Folds) for buffer in folds.keeps]
    moved = traffic_of(statement, frozenset((*kernel.scratch, *kept)))
    share = balance / threads / processor.hertz
    return Cost(
        arithmetic=work.arithmetic * share,
        calls=work.calls * share,
        waiting=work.waiting * share,
        memory=_memory(moved, processor, threads) * balance,
        overhead=processor.region_seconds if threads > 1 else 0.0,
        library=0.0,
        not_hidden=_not_hidden(statement),
        threads=threads / balance,
        main_bytes=moved.read + moved.written,
        cache_bytes=moved.again,
    )


def _not_hidden(statement: Statement) -> float:
    passes = [one for one in statements_in(statement) if isinstance(one, Vec)]
    return NOT_HIDDEN if len(passes) < 2 or any(one.ahead for one in passes) else NOT_HIDDEN_OF_ROWS


def _memory(moved: Traffic, processor: Processor, threads: int) -> float:
    main = processor.main_seconds(moved.read_lines, moved.written_lines, threads, streaming=moved.streaming)
    return main + processor.cache_seconds(moved.again, moved.footprint, threads)


class _Work:
    """Cycles on one core, summed over all leaves."""

    def __init__(self, schedule: Schedule, processor: Processor) -> None:
        self.schedule = schedule
        self.processor = processor
        self.arithmetic = 0.0
        self.calls = 0.0
        self.waiting = 0.0

    def statement(self, statement: Statement, times: float, tiles: frozenset[Axis]) -> None:
        """Adds a statement that is reached so many times; `tiles` are axes dealt out in exact pieces."""
        if isinstance(statement, Par):
            for axis in statement.axes:
                times *= axis.extent
            piece = statement.piece
            times *= piece.count if piece is not None and piece.exact else 1
            tiles = frozenset({piece.place}) if piece is not None and piece.place is not None else frozenset()
            for inner in statement.body:
                again = _pieces(inner, piece.count) if piece is not None and not piece.exact else 1
                self.statement(inner, times * again, tiles)
        elif isinstance(statement, For):
            for inner in statement.body:
                self.statement(inner, times * statement.axis.extent, tiles)
        elif isinstance(statement, Folds):
            for inner in statement.body:
                self.statement(inner, times, tiles)
            lanes = max((v.lanes for v in statements_in(*statement.body) if isinstance(v, Vec)), default=1)
            self.arithmetic += times * 6 * math.log2(lanes) * len(statement.folds)
        elif isinstance(statement, Running):
            within = statement.body.axis == statement.axis
            self._leaf(statement.body, times * (1 if within else statement.axis.extent), tiled=not within)
            rounds = times * math.ceil(statement.axis.extent / statement.body.lanes) if within else 0.0
            self.waiting += rounds * SCAN_LATENCY * len(statement.scans)
        elif isinstance(statement, Vec):
            self._leaf(statement, times, tiled=statement.axis in tiles)
        else:
            self.arithmetic += 6 * times

    def _leaf(self, leaf: Vec, times: float, *, tiled: bool) -> None:
        per = _Leaf(leaf, self.schedule)
        bits = per.element_bits * leaf.lanes
        lanes = leaf.lanes
        if leaf.lanes == 1 and per.compiler_vectorises(tiled=tiled):
            bits = min(COMPILER_BITS, self.processor.host.vector_bits or 128)
            lanes = bits // per.element_bits
        rounds = times * math.ceil(leaf.axis.extent / lanes)
        instructions = per.instructions(lanes)
        if tiled and per.folds and self.schedule.tile * 8 > _REGISTERS * bits:
            instructions += 2 * len(per.folds)
        rate = self.processor.vectors_a_cycle(bits) if lanes > 1 else SCALAR_A_CYCLE
        throughput = instructions / rate + 0.5 / leaf.unroll
        chain = 0.0 if tiled else per.latency(leaf.axis) / leaf.unroll
        calls = per.library_cycles(lanes)
        self.arithmetic += rounds * throughput
        self.calls += rounds * calls
        self.waiting += rounds * max(0.0, chain - throughput - calls)


def _pieces(inner: Statement, count: int) -> int:
    """How often the part of a Par's body that does not walk along the piece is done again for each piece."""
    return 1 if any(isinstance(s, Vec) for s in statements_in(inner)) else count


class _Leaf:
    """What one round of an innermost loop does."""

    def __init__(self, leaf: Vec, schedule: Schedule) -> None:
        self.axis = leaf.axis
        self.schedule = schedule
        self.folds = [s.fold for s in leaf.body if isinstance(s, Accumulate)]
        self.stores = [s for s in leaf.body if isinstance(s, Store)]
        roots = [part for fold in self.folds for part in fold.parts] + [store.value for store in self.stores]
        roots += [scan.here for scan in scans_read(*roots)]
        self.nodes = [node for node in nodes_here(roots) if leaf.axis in node.axes]
        self.ops = [node for node in self.nodes if isinstance(node, Op)]
        self.loads = [node for node in self.nodes if isinstance(node, Load)]

    @property
    def element_bits(self) -> int:
        """Of the widest type computed with."""
        return 8 * max([4, *(SIZES[node.dtype] for node in self.nodes if not isinstance(node, Position | Const))])

    def library_calls(self) -> list[Op]:
        """Operations that call the mathematics library for each element."""
        return [
            op
            for op in self.ops
            if SCALARS[op.name].library > 0
            and op.name not in _ONE_INSTRUCTION
            and not (self.schedule.polynomials and op.dtype == "float32" and SCALARS[op.name].library < 60)
        ]

    def compiler_vectorises(self, *, tiled: bool) -> bool:
        """Whether a compiler would, that must keep NaN and the order of all folds but declared sums."""
        plain = all(fold.monoid in ("sum", "product") or (tiled and len(fold.parts) == 1) for fold in self.folds)
        return plain and not self.library_calls() and not any(self._gathered(load) for load in self.loads)

    def instructions(self, lanes: int) -> float:
        """Of one round, without calls."""
        called = set(self.library_calls())
        total = sum(SCALARS[op.name].work for op in self.ops if op not in called)
        for load in self.loads:
            total += self._load(load, lanes)
        total += len(self.stores)
        return total + sum(_COMBINE.get(fold.monoid, 10.0) for fold in self.folds)

    def _load(self, load: Load, lanes: int) -> float:
        """Instructions of a load: of neighbours, of every other element by two loads and a shuffle, or one by one."""
        step = load.offset.coefficient(self.axis)
        if lanes == 1 or step in (0, 1):
            return 1.0 + 2 * len(load.guards)
        return {2: 4.0, -1: 2.0}.get(step or 0, 1.5 * lanes) + 2 * len(load.guards)

    def library_cycles(self, lanes: int) -> float:
        """Of one round's calls, with lanes taken out of vectors and put back."""
        each = sum(SCALARS[op.name].library * CYCLES_OF_LIBRARY for op in self.library_calls())
        packing = LANE_IN_AND_OUT * len(self.library_calls()) if lanes > 1 else 0.0
        return lanes * (each + packing)

    def latency(self, axis: Axis) -> float:
        """Cycles until the next round's accumulation can start."""
        return max((_LATENCY.get(fold.monoid, 10.0) for fold in self.folds if axis in fold.bound), default=0.0)

    def _gathered(self, load: Load) -> bool:
        return load.offset.coefficient(self.axis) not in (0, 1) or bool(load.guards)


def nodes_here(roots: Sequence[Expr]) -> Iterator[Expr]:
    """Every distinct node that is computed where the roots are: not what folds that were computed before contain."""
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        yield node
        if not isinstance(node, Fold | Scan):
            stack.extend(node.children)
