"""From a meaning and a schedule to a kernel: rewrite, respell, cut folds, place, and store what can't be placed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from apps.agents.builtin import choices, rules
from apps.agents.builtin.form import Buffer, Expr, Fold, Load, Op, transform, walk
from apps.agents.builtin.index import Axis, Index, strides
from apps.agents.builtin.nest import Folds, Kernel, Statement, Store, expressions_in, statements_in
from apps.agents.builtin.placing import Placing, Stuck
from apps.agents.builtin.reading import Meaning
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.targets import Target, replace_nodes, respelled, split_fold, target_of

# A float32 sum in one run of additions drifts by a rounding each; so many, and blocks are summed apart in float64.
LONGEST_RUN = 16384
# Where vectors are left to the compiler it may make none, and then all additions of a row follow each other.
LONGEST_SCALAR_RUN = 512
# Partial results of a cut fold: enough for any number of threads to share evenly, few enough to combine in no time.
PIECES = 64


def lower(meaning: Meaning, schedule: Schedule) -> Kernel:
    """The kernel that computes a meaning's outputs under a schedule."""
    targets = [target_of(f"out{i}" if i else "out", value) for i, value in enumerate(meaning.outputs)]
    bodies = _rewritten([target.body for target in targets], schedule)
    ready = respelled([replace(target, body=body) for target, body in zip(targets, bodies, strict=True)])
    if schedule.reciprocals:
        ready = tuple(
            replace(t, body=b) for t, b in zip(ready, choices.reciprocals([t.body for t in ready]), strict=True)
        )
    return _Stages(schedule).kernel(ready)


def _rewritten(bodies: Sequence[Expr], schedule: Schedule) -> Sequence[Expr]:
    simple: Sequence[Expr] = [rules.simplified(body) for body in bodies]
    if schedule.online:
        simple = choices.online(simple)
    if schedule.moments:
        simple = choices.moments(simple)
    return simple


class _Stages:
    """Stages in order: folds that are cut or can't be placed are stored in scratch by a stage of their own first."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.scratch: list[Buffer] = []
        self.stored: dict[Expr, Expr] = {}
        self.statements: list[Statement] = []

    def kernel(self, targets: Sequence[Target]) -> Kernel:
        """All statements for these targets."""
        placing = Placing(self.schedule)
        for stage in self._stages(targets):
            self.statements += placing.place(stage)
        return self._kernel()

    def _stages(self, targets: Sequence[Target]) -> list[tuple[Target, ...]]:
        stages: list[tuple[Target, ...]] = []
        last = [replace(target, body=self._blocked(target.body)) for target in targets]
        while (fold := self._next_to_store(last)) is not None:
            stage, table = self._storing(fold)
            stages.append(respelled(stage))
            last = [replace(target, body=replace_nodes(target.body, table)) for target in last]
        stages.append(tuple(last))
        return stages

    def _next_to_store(self, targets: Sequence[Target]) -> Fold | None:
        """The innermost fold that wants a stage of its own: one to be cut, or one that no loop order has a place for."""
        for target in targets:
            for node in walk(target.body):
                if isinstance(node, Fold) and self._to_cut(node) is not None:
                    return node
        try:
            Placing(self.schedule).place(targets)
        except Stuck as stuck:
            return stuck.fold
        return None

    def _to_cut(self, fold: Fold) -> tuple[Axis, int] | None:
        """The axis and the number of pieces, where a fold has few results and much to fold."""
        rows = math.prod(axis.extent for axis in fold.axes)
        much = math.prod(axis.extent for axis in fold.bound)
        if rows >= self.schedule.split or much * rows < LONGEST_RUN or not self.schedule.threads:
            return None
        wanted = max(PIECES // rows, min(1024, much // LONGEST_RUN))
        for axis in sorted(fold.bound, key=lambda axis: fold.bound.index(axis)):
            pieces = divisor_near(axis.extent, wanted)
            if pieces > 1 and 4 * pieces >= min(wanted, 8):
                return axis, pieces
        return None

    def _storing(self, fold: Fold) -> tuple[list[Target], dict[Expr, Expr]]:
        cut = self._to_cut(fold)
        if cut is None:
            return self._stored_whole(fold)
        (piece, place), parts = split_fold(fold, *cut)
        bound = tuple(axis for one in fold.bound for axis in ((place,) if one == cut[0] else (one,)) if axis.extent > 1)
        inner = [Fold(fold.monoid, bound, parts, i) for i in range(len(parts))]
        stage, loads = self._into_scratch(inner, (*_ordered(fold.axes), piece))
        wide = fold.monoid == "sum" and fold.dtype == "float32"
        partial = tuple(Op("cast", (load,), "float64") if wide else load for load in loads)
        table: dict[Expr, Expr] = {}
        for i in range(len(parts)):
            total: Expr = Fold(fold.monoid, (piece,), partial, i)
            table[Fold(fold.monoid, fold.bound, fold.parts, i)] = Op("cast", (total,), "float32") if wide else total
        return stage, table

    def _stored_whole(self, fold: Fold) -> tuple[list[Target], dict[Expr, Expr]]:
        every = [Fold(fold.monoid, fold.bound, fold.parts, i) for i in range(len(fold.parts))]
        stage, loads = self._into_scratch(every, _ordered(fold.axes))
        return stage, dict(zip(every, loads, strict=True))

    def _into_scratch(self, values: Sequence[Expr], axes: tuple[Axis, ...]) -> tuple[list[Target], list[Expr]]:
        shape = tuple(axis.extent for axis in axes)
        offset = Index()
        for axis, step in zip(axes, strides(shape), strict=True):
            offset = offset + Index.of(axis) * step
        stage: list[Target] = []
        loads: list[Expr] = []
        for value in values:
            buffer = Buffer(f"part{len(self.scratch)}", value.dtype, math.prod(shape))
            self.scratch.append(buffer)
            stage.append(Target(buffer, axes, offset, value))
            loads.append(Load(buffer, offset))
        return stage, loads

    def _blocked(self, body: Expr) -> Expr:
        """Long float32 sums as float64 sums of shorter ones."""

        def change(node: Expr) -> Expr:
            if not isinstance(node, Fold) or node.monoid != "sum" or node.dtype != "float32":
                return node
            many = math.prod(axis.extent for axis in node.bound)
            longest = LONGEST_RUN if self.schedule.width else LONGEST_SCALAR_RUN
            if many <= 2 * longest or self._to_cut(node) is not None:
                return node
            axis = max(node.bound, key=lambda axis: axis.extent)
            pieces = divisor_near(axis.extent, max(2, many // longest))
            if pieces < 2 or many // pieces < 64:
                return node
            (piece, place), parts = split_fold(node, axis, pieces)
            bound = tuple(one for old in node.bound if (one := place if old == axis else old).extent > 1)
            inner = Op("cast", (Fold("sum", bound, parts),), "float64")
            return Op("cast", (Fold("sum", (piece,), (inner,)),), "float32")

        return transform(body, change)

    def _kernel(self) -> Kernel:
        kept = {buffer for s in statements_in(*self.statements) if isinstance(s, Folds) for buffer in s.keeps}
        used = {n.buffer for n in walk(*expressions_in(*self.statements)) if isinstance(n, Load)} - kept
        written = [s.buffer for s in statements_in(*self.statements) if isinstance(s, Store) and not s.kept]
        scratch = tuple(self.scratch)
        return Kernel(
            tuple(self.statements),
            tuple(sorted(used - set(scratch), key=lambda buffer: buffer.name)),
            tuple(dict.fromkeys(b for b in written if b not in scratch)),
            scratch,
        )


def _ordered(axes: frozenset[Axis]) -> tuple[Axis, ...]:
    return tuple(sorted(axes, key=lambda axis: axis.number))


def divisor_near(extent: int, wanted: int) -> int:
    """The divisor of an extent that is nearest to what is wanted, by ratio; 1 where there is none within a factor of 4."""
    wanted = max(1, min(wanted, extent))
    best = 1
    for candidate in range(1, math.isqrt(extent) + 1):
        if extent % candidate == 0:
            for divisor in (candidate, extent // candidate):
                if abs(math.log(divisor / wanted)) < abs(math.log(best / wanted)):
                    best = divisor
    return best if wanted / 4 <= best <= wanted * 4 else 1
