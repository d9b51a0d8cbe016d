"""What one pass over a row computes and a later pass over it needs again: worth a buffer, or worth computing twice?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from apps.agents.builtin.form import SIZES, Buffer, Expr, Fold, Load, Op, substitute, walk
from apps.agents.builtin.index import Axis, Index, joined
from apps.agents.builtin.scalars import SCALARS

# Elements of a kept row: with 4 bytes each half of a usual second-level cache's way, and harmless on a thread's stack.
LONGEST_KEPT = 16384
# Instructions a vector that a store and a load of the first-level cache have to save.
LEAST_SAVED = 4.0
_MORE_LOADS = 4.0
# Lines whose addresses differ by multiples of 4096 bytes share a set of a usual first-level cache of 8 ways; the second
# level has more sets and as many ways.
WAYS, HALF_A_PAGE = 8, 2048

Kept = tuple[Buffer, Index, Expr]


def shared_work(
    walked: tuple[Axis, ...],
    computed: Sequence[Expr],
    readers: Sequence[tuple[tuple[Axis, ...], tuple[Expr, ...]]],
    number: int,
    *,
    scattered: bool = False,
) -> tuple[list[Kept], list[dict[Expr, Expr]]]:
    """What is to be kept of `computed` while axes are walked, and for each reader what it reads instead of what.

    A reader walks axes of the same extents in the same order. Buffers are numbered from `number` on. `scattered`: the
    axes but the last step far through memory, so that what was loaded may be gone from the caches when it is read again.
    """
    shape = tuple(axis.extent for axis in walked)
    tables: list[dict[Expr, Expr]] = [{} for _ in readers]
    kept: dict[Expr, Kept] = {}
    if math.prod(shape) > LONGEST_KEPT:
        return [], tables
    here = set(walk(*computed))
    offset = joined(tuple(Index.of(axis) for axis in walked), shape)
    for (axes, needs), table in zip(readers, tables, strict=True):
        if tuple(axis.extent for axis in axes) != shape or not axes:
            continue
        forth = dict(zip(axes, (Index.of(axis) for axis in walked), strict=True))

        def fits(one: Expr, to: dict[Axis, Index] = forth) -> bool:
            worth = saves(one, to) or (scattered and collides(one, tuple(to)))
            return worth and substitute(one, to) in here

        for node in _outermost(needs, fits):
            value = substitute(node, forth)
            if value not in kept:
                kept[value] = (Buffer(f"kept{number + len(kept)}", value.dtype, math.prod(shape)), offset, value)
            back = joined(tuple(Index.of(axis) for axis in axes), shape)
            table[node] = Load(kept[value][0], back)
    return list(kept.values()), tables


def saves(node: Expr, along: Iterable[Axis]) -> bool:
    """Whether computing the node again costs more than keeping it: work along these axes, and loads beyond one."""
    axes = frozenset(along)
    if node.dtype == "bool" or not axes <= node.axes:
        return False
    work, loads = 0.0, 0
    for one in walk(node):
        if one.axes.isdisjoint(axes):
            continue
        if isinstance(one, Fold):
            return False
        work += SCALARS[one.name].work if isinstance(one, Op) else 0.0
        loads += isinstance(one, Load)
    return work + _MORE_LOADS * (loads - 1) >= LEAST_SAVED


def collides(node: Expr, walked: tuple[Axis, ...]) -> bool:
    """Whether a load steps by multiples of half a page more often than a cache has ways, so that its lines push each
    other out although they are few."""
    if not isinstance(node, Load) or not frozenset(walked) <= node.axes:
        return False
    size = SIZES[node.buffer.dtype]
    steps = [abs(node.offset.coefficient(axis) or 0) * size for axis in walked[:-1]]
    rows = math.prod(axis.extent for axis in walked[:-1])
    return rows > WAYS and all(step and step % HALF_A_PAGE == 0 for step in steps)


def worth_hoisting(needs: Iterable[Expr], place: Axis, walked: frozenset[Axis]) -> list[Expr]:
    """The largest expressions that depend on the place in a tile, not on the axes walked within it, and cost something."""

    def fits(node: Expr) -> bool:
        if node.dtype == "bool" or place not in node.axes or not node.axes.isdisjoint(walked):
            return False
        here = [one for one in walk(node, folds=False) if place in one.axes]
        return sum(SCALARS[one.name].work for one in here if isinstance(one, Op)) >= LEAST_SAVED

    return _outermost(needs, fits)


def _outermost(roots: Iterable[Expr], fits: Callable[[Expr], bool]) -> list[Expr]:
    found: dict[Expr, None] = {}
    seen: set[Expr] = set()
    stack = list(roots)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if fits(node):
            found[node] = None
        elif not isinstance(node, Fold):
            stack.extend(node.children)
    return list(found)
