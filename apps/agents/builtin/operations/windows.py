"""Pooling: folds over a window around each place, with loads that are guarded at the edges."""

from __future__ import annotations

import math
from dataclasses import dataclass

from apps.agents.builtin.form import COMPUTED, FLOATS, Const, Def, Expr, Fold, Op, Position, axes_of
from apps.agents.builtin.index import Axis, Index, joined
from apps.agents.builtin.monoids import lowest
from apps.agents.builtin.operations.views import within
from apps.agents.builtin.reading import Call, Operand, cast, lowers, number, op
from apps.agents.words import CannotWrite

# The axes of a window, apart from those of any value.
_WINDOW = 200


@dataclass(frozen=True)
class _Window:
    """Along one dimension: the first place, the axis over the window, the distance of its places, where it ends."""

    first: Index
    axis: Axis
    dilation: int = 1
    length: Index | None = None

    @property
    def place(self) -> Index:
        """Where in the operand."""
        return self.first + Index.of(self.axis) * self.dilation


def _many(given: Operand, rank: int, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
    """A parameter for each dimension that is pooled over."""
    if given is None or given == ():
        assert default is not None
        return default
    values = given if isinstance(given, tuple) else (given,)
    return tuple(int(one) for one in values) * (rank if len(values) == 1 else 1)


def _windows(call: Call, rank: int, dilation: tuple[int, ...]) -> list[_Window]:
    sizes = _many(call.arg(1), rank)
    steps, pads = _many(call.arg(2), rank, sizes), _many(call.arg(3), rank, (0,) * rank)
    axes = axes_of(call.node.outputs[0].shape)[-rank:]
    return [
        _Window(Index.of(axis) * steps[d] - pads[d], Axis(_WINDOW + d, sizes[d]), dilation[d])
        for d, axis in enumerate(axes)
    ]


def _element(source: Def, outer: tuple[Axis, ...], windows: list[_Window], fill: Expr) -> Expr:
    """An element of a window; `fill` where that lies outside."""
    indices = (*(Index.of(axis) for axis in outer), *(window.place for window in windows))
    value = within(source, indices, fill)
    for window in windows:
        if window.length is not None:
            inside = Op("lt", (Position(Index.of(window.axis)), Position(window.length)), "bool")
            value = op("select", inside, value, fill)
    return value


def _folded(monoid: str, windows: list[_Window], *parts: Expr, part: int = 0) -> Expr:
    bound = tuple(window.axis for window in windows if window.axis.extent > 1)
    return Fold(monoid, bound, parts, part) if bound else parts[part]


def _rank(call: Call) -> int:
    return int(next(character for character in call.node.op.split(".")[1] if character.isdigit()))


def _largest(call: Call, source: Def, windows: list[_Window]) -> tuple[Def, Def]:
    """The largest element of each window (NaN if any is), and its place among all of the pooled dimensions."""
    rank = len(windows)
    out = call.node.outputs[0]
    axes, dtype = axes_of(out.shape), COMPUTED[out.dtype]
    value = _element(source, axes[:-rank], windows, lowest(dtype))
    shape = source.shape[-rank:]
    place: Expr = Position(joined(tuple(window.place for window in windows), shape))
    place = cast(place, "int32") if math.prod(shape) < 1 << 31 else place
    where = cast(_folded("argmax", windows, value, place, part=1), "int64")
    return Def(axes, _folded("max", windows, value), out.dtype), Def(axes, where, "int64")


@lowers("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(call: Call) -> tuple[Def, Def]:
    """The largest of each window. Padding never is."""
    rank = _rank(call)
    dilation = _many(call.arg(4), rank, (1,) * rank)
    return _largest(call, call.tensor(0), _windows(call, rank, dilation))


@lowers("avg_pool1d", "avg_pool2d", "avg_pool3d")
def avg_pool(call: Call) -> Def:
    """The mean of each window, over all of it or over what lies within the operand."""
    rank, source = _rank(call), call.tensor(0)
    windows = _windows(call, rank, (1,) * rank)
    pads = _many(call.arg(3), rank, (0,) * rank)
    padding_counts = call.arg(5) is not False
    axes, dtype = axes_of(call.out.shape), COMPUTED[call.out.dtype]
    total = _folded("sum", windows, _element(source, axes[:-rank], windows, Const(0.0, dtype)))
    override = call.arg(6)
    if override:
        return Def(axes, op("div", total, number(override, total)), call.out.dtype)
    count: Expr = Const(1, "int64")
    for window, pad, size in zip(windows, pads, source.shape[-rank:], strict=True):
        edges = (-pad, size + pad) if padding_counts else (0, size)
        count = op("mul", count, _covered(window, *edges))
    return Def(axes, op("div", total, cast(count, dtype)), call.out.dtype)


def _covered(window: _Window, low: int, high: int) -> Expr:
    """How many places of a window lie from `low` to `high`, less one."""
    size = window.axis.extent
    first, last = window.first.range()
    if first >= low and last + size <= high:
        return Const(size, "int64")
    start = op("maximum", Position(window.first), Const(low, "int64"))
    end = op("minimum", Position(window.first + size), Const(high, "int64"))
    return op("sub", end, start)


def _adaptive(call: Call, rank: int) -> list[_Window]:
    """Windows from i n / m, rounded down, to (i + 1) n / m, rounded up."""
    source, axes = call.tensor(0), axes_of(call.node.outputs[0].shape)[-rank:]
    windows = []
    for d, (size, axis) in enumerate(zip(source.shape[-rank:], axes, strict=True)):
        parts = axis.extent
        if size % parts == 0:
            windows.append(_Window(Index.of(axis) * (size // parts), Axis(_WINDOW + d, size // parts)))
            continue
        first = (Index.of(axis) * size).quotient(parts)
        last = ((Index.of(axis) + 1) * size + (parts - 1)).quotient(parts)
        longest = max(-(-(i + 1) * size // parts) - i * size // parts for i in range(parts))
        windows.append(_Window(first, Axis(_WINDOW + d, longest), 1, last - first))
    return windows


@lowers("adaptive_avg_pool1d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def adaptive_avg_pool(call: Call) -> Def:
    """Means over windows that divide each dimension as evenly as can be."""
    rank, source = _rank(call), call.tensor(0)
    windows = _adaptive(call, rank)
    axes, dtype = axes_of(call.out.shape), COMPUTED[call.out.dtype]
    if dtype not in FLOATS:
        raise CannotWrite(f"{call.node.op} in {call.out.dtype} is not written.")
    total = _folded("sum", windows, _element(source, axes[:-rank], windows, Const(0.0, dtype)))
    count: Expr = number(math.prod(w.axis.extent for w in windows if w.length is None), total)
    for window in windows:
        if window.length is not None:
            count = op("mul", cast(Position(window.length), dtype), count)
    return Def(axes, op("div", total, count), call.out.dtype)


@lowers("adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(call: Call) -> tuple[Def, Def]:
    """The largest of each of such windows."""
    rank = _rank(call)
    return _largest(call, call.tensor(0), _adaptive(call, rank))
