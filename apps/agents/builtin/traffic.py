"""Which bytes a statement moves: between the cores and where arguments lie, and again from a nearer cache."""

from __future__ import annotations

import math
from dataclasses import dataclass

from apps.agents.builtin.form import SIZES, Buffer, Expr, Fold, Load
from apps.agents.builtin.index import Axis, Index
from apps.agents.builtin.nest import Accumulate, Par, Piece, Statement, Store, Vec, statements_in
from apps.agents.builtin.processor import CACHE_LINE

# A run of bytes along memory costs this many more: the hardware's prefetcher has to find the next one first.
START_OF_RUN = 192


@dataclass(frozen=True)
class Traffic:
    """Bytes of one call. `..lines` count what is fetched to get them; `again` lies within `footprint` bytes a thread."""

    read: float = 0.0
    written: float = 0.0
    read_lines: float = 0.0
    written_lines: float = 0.0
    again: float = 0.0
    footprint: float = 0.0
    streaming: bool = False


@dataclass(frozen=True)
class _Touch:
    """One access in one pass: bytes a point of the Par, bytes over all of it, and bytes fetched for each of them."""

    buffer: Buffer
    here: float
    distinct: float
    waste: float


def traffic_of(statement: Statement, near: frozenset[Buffer]) -> Traffic:
    """What a statement outside of all loops moves; buffers in `near` are small and stay in cache."""
    par = statement if isinstance(statement, Par) else None
    points = par.count if par is not None else 1
    passes = [vec for vec in statements_in(statement) if isinstance(vec, Vec)]
    seen: dict[Buffer, float] = {}
    read = written = read_lines = written_lines = again = 0.0
    streaming = False
    for one in passes:
        touched: dict[Buffer, float] = {}
        for load in _loads(one):
            touch = _touch(load.buffer, load.offset, par, one.axis)
            first = max(0.0, touch.distinct - seen.get(touch.buffer, 0.0) - touched.get(touch.buffer, 0.0))
            first = min(first, max(0.0, touch.buffer.bytes - seen.get(touch.buffer, 0.0)))
            if touch.buffer in near:
                first = 0.0
            read += first
            read_lines += first * touch.waste
            again += max(0.0, touch.here * points - first)
            touched[touch.buffer] = touched.get(touch.buffer, 0.0) + touch.distinct
        for store in (s for s in one.body if isinstance(s, Store)):
            touch = _touch(store.buffer, store.offset, par, one.axis)
            if touch.buffer in near:
                again += touch.here * points
                continue
            written += touch.distinct
            written_lines += touch.distinct * touch.waste
            streaming = streaming or store.streaming
        for buffer, amount in touched.items():
            seen[buffer] = max(seen.get(buffer, 0.0), min(amount, buffer.bytes))
    return Traffic(read, written, read_lines, written_lines, again, _footprint(passes, par), streaming)


def _loads(vec: Vec) -> list[Load]:
    """Loads of one pass, one for each place."""
    found: dict[tuple[Buffer, Index], Load] = {}
    seen: set[Expr] = set()
    stack: list[Expr] = []
    for statement in vec.body:
        stack.extend(statement.fold.parts if isinstance(statement, Accumulate) else (statement.value,))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Load):
            found.setdefault((node.buffer, node.offset), node)
        if not isinstance(node, Fold):
            stack.extend(node.children)
    return list(found.values())


def _footprint(passes: list[Vec], par: Par | None) -> float:
    """Bytes that one point of the Par touches in all its passes, each buffer once."""
    most: dict[Buffer, float] = {}
    for one in passes:
        places = [(load.buffer, load.offset) for load in _loads(one)]
        places += [(s.buffer, s.offset) for s in one.body if isinstance(s, Store)]
        for buffer, offset in places:
            most[buffer] = max(most.get(buffer, 0.0), _touch(buffer, offset, par, one.axis).here)
    return sum(most.values())


def _touch(buffer: Buffer, offset: Index, par: Par | None, along: Axis) -> _Touch:
    piece = par.piece if par is not None else None
    outside = frozenset(par.axes) if par is not None else frozenset()
    if piece is not None and piece.start is not None:
        outside |= {piece.start}
    size = SIZES[buffer.dtype]
    axes = offset.axes()
    here = size * math.prod(_extent(axis, piece) for axis in axes if axis not in outside)
    distinct = size * math.prod(
        piece.count if piece is not None and axis == piece.start else axis.extent for axis in axes
    )
    return _Touch(
        buffer, min(here, buffer.bytes), min(distinct, buffer.bytes), _waste(offset, size, outside, piece, along)
    )


def _waste(offset: Index, size: int, outside: frozenset[Axis], piece: Piece | None, along: Axis) -> float:
    """Bytes fetched for each byte used: whole lines for steps over them, and the start of each run along memory."""
    step = offset.coefficient(along)
    if step is None or abs(step) > 1:
        return min(CACHE_LINE / size, float(abs(step or CACHE_LINE)))
    run = size * (_extent(along, piece) if step else 1)
    others = [a for a in offset.axes() if a not in outside and a != along]
    apart = any(abs(offset.coefficient(axis) or run) * size > run for axis in others)
    return 1.0 + START_OF_RUN / run if apart and step else 1.0


def _extent(axis: Axis, piece: Piece | None) -> int:
    return min(piece.size, axis.extent) if piece is not None and axis == piece.axis else axis.extent
