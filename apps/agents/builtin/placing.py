"""Where each fold and each store has its place among the loops.

A fold is computed as soon as the axes that it depends on are bound, before anything that reads it. A target whose folds
depend on some of its axes therefore loops over those first, folds, and then loops over the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from apps.agents.builtin.form import SIZES, Buffer, Expr, Fold, Load, scans_read
from apps.agents.builtin.index import Axis, Index
from apps.agents.builtin.keeping import shared_work, worth_hoisting
from apps.agents.builtin.nest import Accumulate, Folds, For, Par, Piece, Running, Statement, Store, Vec
from apps.agents.builtin.prefetching import asking_ahead
from apps.agents.builtin.respelling import PLACE, START, backwards, scanned_axis, spelled_in_tiles, turned
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.targets import Target
from apps.agents.builtin.tasks import Group, Task, groups, ranked, reading, unknown_folds
from apps.agents.builtin.walking import best_axis, bound_axes, by_step, widens, widest, work

# Fewer points than this (elements touched) are not worth waking threads for; about 20 us of work.
LEAST_PARALLEL = 16384


class Placing:
    """Places targets one group after another; folds computed outside all loops stay known.

    Buffers in `cached` are never stored past the caches.
    """

    def __init__(self, schedule: Schedule, cached: frozenset[Buffer] = frozenset()) -> None:
        self.schedule = schedule
        self.cached = cached
        self.known: frozenset[Fold] = frozenset()
        self.tile_lanes = 1
        self.aligned: Axis | None = None
        self.kept = 0

    def place(self, targets: Sequence[Target]) -> list[Statement]:
        """Statements for targets that may be computed together. Raises `Stuck`."""
        tasks: Sequence[Task] = [Task(t.axes, Store(t.buffer, t.offset, t.body), (t.body,)) for t in targets]
        running = [self._running(task) for task in tasks if scans_read(*task.needs)]
        if running:
            tasks = [task for task in tasks if not scans_read(*task.needs)]
            return running + self._placed(tasks)
        return self._placed(tasks)

    def _placed(self, tasks: Sequence[Task]) -> list[Statement]:
        statements, self.known, tasks = self._folds(tasks, frozenset(), self.known, None)
        for group in groups(tasks, frozenset(), self.known):
            statements += self._parallel(group, self.known)
        return statements

    def _running(self, task: Task) -> Statement:
        """Points of all axes but the one that is scanned are independent of each other."""
        assert isinstance(task.statement, Store)
        axis = scanned_axis(task.needs[0])
        assert axis is not None
        if backwards(task.needs[0]):
            axis, task = turned(task, axis)
        vector = best_axis([task], task.axes)
        others = tuple(one for one in task.axes if one not in (axis, vector))
        threads = self.schedule.threads and work([task]) >= LEAST_PARALLEL
        if vector in (None, axis):
            lanes = self._lanes(axis, [task])
            store = task.statement
            assert isinstance(store, Store)
            if self.schedule.streaming:
                store = self._streamed(store, axis, lanes)
            return Par(others, None, (Running(axis, scans_read(store.value), Vec(axis, lanes, 1, (store,))),), threads)
        assert vector is not None
        piece = self._tile(vector, [task])
        assert piece.place is not None
        (spelled,), _ = spelled_in_tiles([task], piece)
        loop = self._vector(piece.place, (spelled.statement,), whole=False)
        return Par(others, piece, (Running(axis, scans_read(*spelled.needs), loop),), threads)

    # --- outside: what threads share

    def _parallel(self, group: Group, known: frozenset[Fold]) -> list[Statement]:
        axes = group.first or group.tasks[0].axes
        if not axes:
            return [task.statement for task in group.tasks]
        vector = best_axis(group.tasks, axes)
        inside = set(axes) if group.first else set()
        everything = {axis for task in group.tasks for axis in task.axes} | bound_axes(group.tasks)
        if group.first and best_axis(group.tasks, tuple(everything)) not in inside:
            vector = None
        if vector is None and not group.first:
            vector = axes[-1]
        others = tuple(axis for axis in axes if axis != vector)
        piece: Piece | None = None
        bound = frozenset(axes)
        tasks = [task.within(bound) for task in group.tasks]
        body: list[Statement]
        if not group.first:
            assert vector is not None
            piece = self._block(vector, others)
            body = [self._vector(vector, tuple(task.statement for task in tasks), whole=True)]
        elif vector is None:
            body = self._inside(tasks, bound, known, None)
            if self.schedule.ahead and others:
                body = asking_ahead(body, others[-1])
        else:
            piece = self._tile(vector, group.tasks)
            tasks, here = spelled_in_tiles(tasks, piece)
            body = self._inside(tasks, frozenset(others) | here, known, piece.place)
        threads = self.schedule.threads and work(group.tasks) >= LEAST_PARALLEL
        return [Par(others, piece, tuple(body), threads)]

    def _tile(self, vector: Axis, tasks: Sequence[Task]) -> Piece:
        lanes = self.tile_lanes = self._lanes(vector, tasks)
        size = min(max(1, self.schedule.tile // (lanes * 4)) * lanes, vector.extent // lanes * lanes)
        start = Axis(START, vector.extent) if size < vector.extent else None
        # A tile that reaches back begins anywhere, unless all of the axis is whole vectors.
        self.aligned = start if vector.extent % lanes == 0 else None
        return Piece(vector, size, start, Axis(PLACE, size))

    def _block(self, vector: Axis, others: tuple[Axis, ...]) -> Piece | None:
        rows = math.prod(axis.extent for axis in others)
        if rows >= PLENTY_OF_ROWS and vector.extent <= 4 * self.schedule.block:
            return None
        return Piece(vector, min(self.schedule.block, -(-vector.extent // 64) * 64))

    # --- inside: folds first, then what reads them

    def _inside(
        self, tasks: Sequence[Task], bound: frozenset[Axis], known: frozenset[Fold], vector: Axis | None
    ) -> list[Statement]:
        statements, known, tasks = self._folds(tasks, bound, known, vector)
        for group in groups(tasks, bound, known):
            if group.first:
                more = bound | frozenset(group.first)
                inner = self._inside([t.within(more) for t in group.tasks], more, known, vector)
                if self.schedule.ahead and vector is None:
                    inner = asking_ahead(inner, group.first[-1])
                statements += _loops(group.first, inner)
            else:
                leaf: Sequence[Task] = group.tasks
                if vector is not None and leaf[0].axes:
                    hoisted, leaf = self._hoisted(leaf, vector)
                    statements += hoisted
                statements += self._leaf(leaf, vector)
        return statements

    def _folds(
        self, tasks: Sequence[Task], bound: frozenset[Axis], known: frozenset[Fold], vector: Axis | None
    ) -> tuple[list[Statement], frozenset[Fold], Sequence[Task]]:
        statements: list[Statement] = []
        ready = [fold for fold in unknown_folds(tasks, known) if fold.axes <= bound]
        for together in ranked(ready):
            inner = [Task(fold.bound, Accumulate(fold), fold.parts) for fold in together]
            keeps: tuple[Buffer, ...] = ()
            if self.schedule.keep and bound:
                stores, tasks = self._kept(together, tasks, () if vector is None else (vector,))
                inner += [Task(together[0].bound, store, (store.value,)) for store in stores]
                keeps = tuple(store.buffer for store in stores)
            body = self._inside(inner, bound, known, vector)
            statements.append(Folds(tuple(together), tuple(body), keeps))
            known = known | frozenset(together)
        return statements, known, tasks

    def _kept(
        self, folds: Sequence[Fold], tasks: Sequence[Task], tile: tuple[Axis, ...]
    ) -> tuple[list[Store], Sequence[Task]]:
        """Stores of what a pass of folds computes and a later one needs again, and the tasks reading these instead."""
        found, readers = shared_work(
            (*folds[0].bound, *tile),
            [part for fold in folds for part in fold.parts],
            [((*task.axes, *tile), task.needs) for task in tasks],
            self.kept,
            scattered=bool(tile),
        )
        self.kept += len(found)
        changed = [reading(task, table) for task, table in zip(tasks, readers, strict=True)]
        return [Store(buffer, offset, value, kept=True) for buffer, offset, value in found], changed

    def _hoisted(self, tasks: Sequence[Task], place: Axis) -> tuple[list[Statement], Sequence[Task]]:
        """What depends on a tile alone and not on the axes that are walked within it, computed once for the tile."""
        kept: dict[Expr, Buffer] = {}
        changed = []
        for task in tasks:
            table: dict[Expr, Expr] = {}
            for node in worth_hoisting(task.needs, place, frozenset(task.axes)):
                if node not in kept:
                    kept[node] = Buffer(f"kept{self.kept + len(kept)}", node.dtype, place.extent)
                table[node] = Load(kept[node], Index.of(place))
            changed.append(reading(task, table))
        if not kept:
            return [], tasks
        self.kept += len(kept)
        stores = tuple(Store(buffer, Index.of(place), node, kept=True) for node, buffer in kept.items())
        loop = self._vector(place, stores, whole=False)
        return [Folds((), (loop,), tuple(kept.values()))], changed

    def _leaf(self, tasks: Sequence[Task], vector: Axis | None) -> list[Statement]:
        """Loops over the axes that are left, the vector axis innermost, or the surrounding tile's."""
        axes = tasks[0].axes
        body = tuple(task.statement for task in tasks)
        if vector is not None:
            return _loops(by_step(axes, tasks), [self._vector(vector, body, whole=False, tasks=tasks)])
        if not axes:
            return list(body)
        along = best_axis(tasks, axes)
        if along is None:
            return _loops(axes[:-1], [Vec(axes[-1], 1, 1, body)])
        others = tuple(axis for axis in by_step(axes, tasks) if axis != along)
        return _loops(others, [self._vector(along, body, whole=True, tasks=tasks)])

    def _vector(
        self, axis: Axis, body: tuple[Store | Accumulate, ...], *, whole: bool, tasks: Sequence[Task] = ()
    ) -> Vec:
        made = [Task((axis,), s, (s.value,) if isinstance(s, Store) else s.fold.parts) for s in body]
        # What is kept for a tile is laid out in vectors, which all loops over it share.
        lanes = self._lanes(axis, made) if whole else self.tile_lanes
        folding = whole and any(isinstance(s, Accumulate) and axis in s.fold.bound for s in body)
        unroll = self.schedule.accumulators if folding and lanes > 1 else 1
        while unroll > 1 and unroll * lanes > axis.extent:
            unroll //= 2
        # A tile that reaches back, so as to be whole, begins anywhere.
        if self.schedule.streaming:
            body = tuple(self._streamed(s, axis, lanes) if isinstance(s, Store) and not s.kept else s for s in body)
        return Vec(axis, lanes, unroll, body)

    def _streamed(self, store: Store, axis: Axis, lanes: int) -> Store:
        """The store past the caches where its vectors are always aligned (buffers begin at 64 bytes) and it is worth it."""
        bytes_ = lanes * SIZES[store.buffer.dtype]
        aligned = store.offset.constant % lanes == 0 and store.offset.coefficient(axis) == 1
        for atom, step in store.offset.terms:
            aligned = aligned and (atom in (axis, self.aligned) or step % lanes == 0)
        whole = bytes_ in (16, 32, 64) and store.buffer.dtype in ("float32", "float64", "int64", "int32")
        return replace(store, streaming=aligned and whole and not widens(store) and store.buffer not in self.cached)

    def _lanes(self, axis: Axis, tasks: Sequence[Task]) -> int:
        if not self.schedule.width:
            return 1
        lanes = self.schedule.width // 8 // widest(tasks, axis)
        while lanes > axis.extent:
            lanes //= 2
        return max(1, lanes)


# With so many rows each thread has enough of them, and a row needs no cutting.
PLENTY_OF_ROWS = 256


def _loops(axes: Sequence[Axis], body: list[Statement]) -> list[Statement]:
    for axis in reversed(axes):
        body = [For(axis, tuple(body))]
    return body
