"""Where each fold and each store has its place among the loops.

A fold is computed as soon as the axes that it depends on are bound, before anything that reads it. A target whose folds
depend on some of its axes therefore loops over those first, folds, and then loops over the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from apps.agents.builtin.form import SIZES, Buffer, Expr, Fold, Load, Op, Position, walk
from apps.agents.builtin.index import Axis, Index
from apps.agents.builtin.keeping import shared_work
from apps.agents.builtin.nest import Accumulate, Folds, For, Par, Piece, Statement, Store, Vec
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.targets import Target, replace_nodes

# Fewer points than this (elements touched) are not worth waking threads for; about 20 us of work.
LEAST_PARALLEL = 16384


class Stuck(Exception):
    """A fold that would be computed again and again; it has to be stored first."""

    def __init__(self, fold: Fold) -> None:
        super().__init__("a fold has no place")
        self.fold = fold


@dataclass(frozen=True)
class _Task:
    """A statement to reach for all points of axes."""

    axes: tuple[Axis, ...]
    statement: Store | Accumulate
    needs: tuple[Expr, ...]

    def within(self, bound: frozenset[Axis]) -> _Task:
        return replace(self, axes=tuple(axis for axis in self.axes if axis not in bound))


class Placing:
    """Places targets one group after another; folds computed outside all loops stay known."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.known: frozenset[Fold] = frozenset()
        self.tile_lanes = 1
        self.kept = 0

    def place(self, targets: Sequence[Target]) -> list[Statement]:
        """Statements for targets that may be computed together. Raises `Stuck`."""
        tasks: Sequence[_Task] = [_Task(t.axes, Store(t.buffer, t.offset, t.body), (t.body,)) for t in targets]
        statements, self.known, tasks = self._folds(tasks, frozenset(), self.known, None)
        for group in _groups(tasks, frozenset(), self.known):
            statements += self._parallel(group, self.known)
        return statements

    # --- outside: what threads share

    def _parallel(self, group: _Group, known: frozenset[Fold]) -> list[Statement]:
        axes = group.first or group.tasks[0].axes
        if not axes:
            return [task.statement for task in group.tasks]
        vector = best_axis(group.tasks, axes)
        inside = set(axes) if group.first else set()
        everything = {axis for task in group.tasks for axis in task.axes} | _bound_axes(group.tasks)
        if group.first and best_axis(group.tasks, tuple(everything)) not in inside:
            vector = None
        if vector is None and not group.first:
            vector = axes[-1]
        others = tuple(axis for axis in axes if axis != vector)
        piece = self._piece(vector, others, group) if vector is not None else None
        bound = frozenset(axes)
        if group.first:
            if vector is not None:
                self.tile_lanes = self._lanes(vector, group.tasks)
            body = self._inside([t.within(bound) for t in group.tasks], bound, known, vector)
        else:
            assert vector is not None
            body = [self._vector(vector, tuple(t.statement for t in group.tasks), whole=True)]
        threads = self.schedule.threads and _work(group.tasks) >= LEAST_PARALLEL
        return [Par(others, piece, tuple(body), threads)]

    def _piece(self, vector: Axis, others: tuple[Axis, ...], group: _Group) -> Piece | None:
        lanes = self._lanes(vector, group.tasks)
        if group.first:
            size = max(1, self.schedule.tile // (lanes * 4)) * lanes
            return Piece(vector, min(size, vector.extent // lanes * lanes), exact=True)
        rows = math.prod(axis.extent for axis in others)
        if rows >= PLENTY_OF_ROWS and vector.extent <= 4 * self.schedule.block:
            return None
        return Piece(vector, min(self.schedule.block, -(-vector.extent // 64) * 64), exact=False)

    # --- inside: folds first, then what reads them

    def _inside(
        self, tasks: Sequence[_Task], bound: frozenset[Axis], known: frozenset[Fold], vector: Axis | None
    ) -> list[Statement]:
        statements, known, tasks = self._folds(tasks, bound, known, vector)
        for group in _groups(tasks, bound, known):
            if group.first:
                more = bound | frozenset(group.first)
                inner = self._inside([t.within(more) for t in group.tasks], more, known, vector)
                statements += _loops(group.first, inner)
            else:
                statements += self._leaf(group.tasks, vector)
        return statements

    def _folds(
        self, tasks: Sequence[_Task], bound: frozenset[Axis], known: frozenset[Fold], vector: Axis | None
    ) -> tuple[list[Statement], frozenset[Fold], Sequence[_Task]]:
        statements: list[Statement] = []
        ready = [fold for fold in _unknown(tasks, known) if fold.axes <= bound]
        for together in _ranked(ready):
            inner = [_Task(fold.bound, Accumulate(fold), fold.parts) for fold in together]
            keeps: tuple[Buffer, ...] = ()
            if self.schedule.keep and bound and vector is None:
                stores, tasks = self._kept(together[0].bound, together, tasks)
                inner += [_Task(together[0].bound, store, (store.value,)) for store in stores]
                keeps = tuple(store.buffer for store in stores)
            body = self._inside(inner, bound, known, vector)
            statements.append(Folds(tuple(together), tuple(body), keeps))
            known = known | frozenset(together)
        return statements, known, tasks

    def _kept(
        self, walked: tuple[Axis, ...], folds: Sequence[Fold], tasks: Sequence[_Task]
    ) -> tuple[list[Store], Sequence[_Task]]:
        """Stores of what a pass of folds computes and a later one needs again, and the tasks reading these instead."""
        found, readers = shared_work(
            walked,
            [part for fold in folds for part in fold.parts],
            [(task.axes, task.needs) for task in tasks],
            self.kept,
        )
        self.kept += len(found)
        changed = []
        for task, table in zip(tasks, readers, strict=True):
            if table and isinstance(task.statement, Store):
                value = replace_nodes(task.statement.value, table)
                task = _Task(task.axes, replace(task.statement, value=value), (value,))
            changed.append(task)
        return [Store(buffer, offset, value, kept=True) for buffer, offset, value in found], changed

    def _leaf(self, tasks: Sequence[_Task], vector: Axis | None) -> list[Statement]:
        """Loops over the axes that are left, the vector axis innermost, or the surrounding tile's."""
        axes = tasks[0].axes
        body = tuple(task.statement for task in tasks)
        if vector is not None:
            return _loops(_by_step(axes, tasks), [self._vector(vector, body, whole=False, tasks=tasks)])
        if not axes:
            return list(body)
        along = best_axis(tasks, axes)
        if along is None:
            return _loops(axes[:-1], [Vec(axes[-1], 1, 1, body)])
        others = tuple(axis for axis in _by_step(axes, tasks) if axis != along)
        return _loops(others, [self._vector(along, body, whole=True, tasks=tasks)])

    def _vector(
        self, axis: Axis, body: tuple[Store | Accumulate, ...], *, whole: bool, tasks: Sequence[_Task] = ()
    ) -> Vec:
        made = [_Task((axis,), s, (s.value,) if isinstance(s, Store) else s.fold.parts) for s in body]
        # What is kept for a tile is laid out in vectors, which all loops over it share.
        lanes = self._lanes(axis, made) if whole else self.tile_lanes
        folding = whole and any(isinstance(s, Accumulate) and axis in s.fold.bound for s in body)
        unroll = self.schedule.accumulators if folding and lanes > 1 else 1
        while unroll > 1 and unroll * lanes > axis.extent:
            unroll //= 2
        # A tile that reaches back, so as to be whole, begins anywhere.
        if self.schedule.streaming and (whole or axis.extent % lanes == 0):
            body = tuple(_streamed(s, axis, lanes) if isinstance(s, Store) and not s.kept else s for s in body)
        return Vec(axis, lanes, unroll, body)

    def _lanes(self, axis: Axis, tasks: Sequence[_Task]) -> int:
        if not self.schedule.width:
            return 1
        lanes = self.schedule.width // 8 // widest(tasks, axis)
        while lanes > axis.extent:
            lanes //= 2
        return max(1, lanes)


# With so many rows each thread has enough of them, and a row needs no cutting.
PLENTY_OF_ROWS = 256


@dataclass(frozen=True)
class _Group:
    """Tasks that loop together: over `first`, then further; or, where that is empty, over the same axes at once."""

    first: tuple[Axis, ...]
    tasks: tuple[_Task, ...]


def _groups(tasks: Sequence[_Task], bound: frozenset[Axis], known: frozenset[Fold]) -> list[_Group]:
    table: dict[tuple[bool, frozenset[Axis]], list[_Task]] = {}
    for task in tasks:
        first = _first_axes(task, known)
        table.setdefault((bool(first), first or frozenset(task.axes)), []).append(task)
    return [
        _Group(tuple(axis for axis in members[0].axes if axis in axes) if folds else (), tuple(members))
        for (folds, axes), members in table.items()
    ]


def _first_axes(task: _Task, known: frozenset[Fold]) -> frozenset[Axis]:
    """The axes that must be bound before the first of a task's folds can be computed. Raises `Stuck`."""
    mine = frozenset(task.axes)
    wanted = {fold: fold.axes & mine for fold in _unknown([task], known)}
    needs = [axes for axes in wanted.values() if axes]
    if not needs:
        for fold in wanted:
            raise Stuck(fold)
        return frozenset()
    first = min(needs, key=lambda axes: (len(axes), sorted(axis.number for axis in axes)))
    for fold, axes in wanted.items():
        if not first <= axes:
            raise Stuck(fold)
    return first


def _unknown(tasks: Sequence[_Task], known: frozenset[Fold]) -> list[Fold]:
    """All folds, nested ones too, that the tasks read and that are not computed yet; inner ones first."""
    found: dict[Fold, None] = {}
    seen: set[Expr] = set()
    stack = [(need, False) for task in reversed(tasks) for need in reversed(task.needs)]
    while stack:
        node, ready = stack.pop()
        if ready:
            if isinstance(node, Fold):
                found[node.whole] = None
        elif node not in seen and not (isinstance(node, Fold) and node.whole in known):
            seen.add(node)
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
    return list(found)


def _ranked(ready: Sequence[Fold]) -> list[list[Fold]]:
    """Folds in groups that can be accumulated together: none reads another of its group, all over the same axes."""
    rank: dict[Fold, int] = {}
    for fold in ready:  # inner ones come first
        inside = [rank[n.whole] for n in walk(*fold.parts) if isinstance(n, Fold) and n.whole in rank]
        rank[fold] = 1 + max(inside, default=0)
    table: dict[tuple[int, frozenset[Axis]], list[Fold]] = {}
    for fold in ready:
        table.setdefault((rank[fold], frozenset(fold.bound)), []).append(fold)
    return [table[key] for key in sorted(table, key=lambda key: key[0])]


def _loops(axes: Sequence[Axis], body: list[Statement]) -> list[Statement]:
    for axis in reversed(axes):
        body = [For(axis, tuple(body))]
    return body


# --- which axis is walked along ---------------------------------------------------------------------------------


def best_axis(tasks: Sequence[_Task], axes: Sequence[Axis]) -> Axis | None:
    """The axis along which most elements lie next to each other, None where none does."""
    scores = dict.fromkeys(axes, 0)
    for index in dict.fromkeys(_addresses(tasks)):
        weight = math.prod(axis.extent for axis in index.axes())
        for axis in axes:
            if index.coefficient(axis) == 1:
                scores[axis] += weight
    best = max(axes, key=lambda axis: scores[axis], default=None)
    return best if best is not None and scores[best] else None


def _addresses(tasks: Sequence[_Task]) -> list[Index]:
    found = [node.offset for node in walk(*(need for task in tasks for need in task.needs)) if isinstance(node, Load)]
    return found + [task.statement.offset for task in tasks if isinstance(task.statement, Store)]


def _by_step(axes: tuple[Axis, ...], tasks: Sequence[_Task]) -> tuple[Axis, ...]:
    """Axes in order of how far they step through memory, the farthest outermost."""
    found = _addresses(tasks)
    return tuple(sorted(axes, key=lambda axis: -max((abs(i.coefficient(axis) or 0) for i in found), default=0)))


def _bound_axes(tasks: Sequence[_Task]) -> set[Axis]:
    needs = [need for task in tasks for need in task.needs]
    return {axis for node in walk(*needs) if isinstance(node, Fold) for axis in node.bound}


def widest(tasks: Sequence[_Task], axis: Axis) -> int:
    """Bytes of the widest type computed with along an axis. A position cast to 32 bits is made in 32 bits."""
    narrow: set[Expr] = {
        node.args[0]
        for node in walk(*(need for task in tasks for need in task.needs))
        if isinstance(node, Op) and node.name == "cast" and node.dtype == "int32" and isinstance(node.args[0], Position)
    }
    narrow |= {task.statement.value for task in tasks if isinstance(task.statement, Store) and widens(task.statement)}
    size = 4
    for node in walk(*(need for task in tasks for need in task.needs)):
        if axis in node.axes and node not in narrow and node.dtype != "bool":
            size = max(size, SIZES[node.dtype])
    return size


def widens(store: Store) -> bool:
    """Whether a store only makes whole numbers of 64 bits of those of 32, which it can do by halves of a vector."""
    value = store.value
    return isinstance(value, Op) and value.name == "cast" and (value.args[0].dtype, value.dtype) == ("int32", "int64")


def _work(tasks: Sequence[_Task]) -> int:
    """Elements touched, about."""
    return sum(math.prod(axis.extent for axis in index.axes()) for index in dict.fromkeys(_addresses(tasks)))


def _streamed(store: Store, axis: Axis, lanes: int) -> Store:
    """The store past the caches where its vectors are always aligned: buffers begin at 64 bytes."""
    bytes_ = lanes * SIZES[store.buffer.dtype]
    aligned = store.offset.constant % lanes == 0 and store.offset.coefficient(axis) == 1
    for atom, step in store.offset.terms:
        aligned = aligned and (atom == axis or step % lanes == 0)
    whole = (
        not widens(store) and bytes_ in (16, 32, 64) and store.buffer.dtype in ("float32", "float64", "int64", "int32")
    )
    return replace(store, streaming=aligned and whole)
