"""From a meaning and a schedule to a kernel: rewrite, respell, cut folds, place, and store what can't be placed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from apps.agents.builtin import choices, rules
from apps.agents.builtin.form import Buffer, Expr, Fold, Load, Op, Scan, fresh, substitute, transform, walk
from apps.agents.builtin.index import Axis, Index, strides
from apps.agents.builtin.nest import Folds, Kernel, Statement, Store, expressions_in, statements_in
from apps.agents.builtin.placing import Placing
from apps.agents.builtin.reading import Meaning
from apps.agents.builtin.respelling import scanned_axis
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.targets import Target, replace_nodes, respelled, sharing_memory, split_folds, target_of
from apps.agents.builtin.tasks import Stuck

# A float32 sum in one run of additions drifts by a rounding each; so many, and blocks are summed apart in float64.
LONGEST_RUN = 16384
# Where vectors are left to the compiler it may make none, and then all additions of a row follow each other.
LONGEST_SCALAR_RUN = 512
# Partial results of a cut fold: enough for any number of threads to share evenly, few enough to combine in no time.
PIECES = 64


def lower(meaning: Meaning, schedule: Schedule) -> Kernel:
    """The kernel that computes a meaning's outputs under a schedule, and before them the operands of library calls."""
    scratch: list[Buffer] = []
    rounds: list[tuple[Statement, ...]] = []
    inplace: list[tuple[str, str]] = []
    operands = [[target_of(one.fact.name, one.value) for one in made.operands] for made in meaning.rounds]
    outputs = [target_of(f"out{i}" if i else "out", value) for i, value in enumerate(meaning.outputs)]
    products: set[str] = set()
    for number, (made, targets) in enumerate(zip(meaning.rounds, operands, strict=True)):
        later = [target for more in operands[number + 1 :] for target in more] + outputs
        needed = _loaded(later) | {
            name for round_ in meaning.rounds[number:] for call in round_.calls for name in call.reads
        }
        sharing, pairs = sharing_memory(targets, products - needed)
        inplace += pairs
        rounds.append(_statements(sharing, schedule, scratch))
        products |= {call.result.name for call in made.calls}
    outputs, pairs = sharing_memory(outputs, products)
    last = _statements(outputs, schedule, scratch)
    flops = sum(call.flops for call in meaning.calls)
    return _kernel(last, rounds, scratch, flops, (*inplace, *pairs))


def _loaded(targets: Sequence[Target]) -> set[str]:
    return {node.buffer.name for target in targets for node in walk(target.body) if isinstance(node, Load)}


def _statements(targets: Sequence[Target], schedule: Schedule, scratch: list[Buffer]) -> tuple[Statement, ...]:
    bodies = _rewritten([target.body for target in targets], schedule)
    ready = respelled([replace(target, body=body) for target, body in zip(targets, bodies, strict=True)])
    if schedule.reciprocals:
        ready = tuple(
            replace(t, body=b) for t, b in zip(ready, choices.reciprocals([t.body for t in ready]), strict=True)
        )
    return _Stages(schedule, scratch).statements(ready) if ready else ()


def _kernel(
    last: tuple[Statement, ...],
    rounds: Sequence[tuple[Statement, ...]],
    scratch: Sequence[Buffer],
    flops: float,
    inplace: tuple[tuple[str, str], ...],
) -> Kernel:
    everything = (*(one for statements in rounds for one in statements), *last)
    kept = {buffer for s in statements_in(*everything) if isinstance(s, Folds) for buffer in s.keeps}
    written = [s.buffer for s in statements_in(*everything) if isinstance(s, Store) and not s.kept]
    used = {node.buffer for node in walk(*expressions_in(*everything)) if isinstance(node, Load)}
    return Kernel(
        last,
        tuple(sorted(used - kept - set(scratch) - set(written), key=lambda buffer: buffer.name)),
        tuple(dict.fromkeys(b for b in written if b not in scratch)),
        tuple(scratch),
        tuple(rounds),
        flops,
        inplace,
    )


def _rewritten(bodies: Sequence[Expr], schedule: Schedule) -> Sequence[Expr]:
    simple: Sequence[Expr] = [rules.simplified(body) for body in bodies]
    if schedule.online:
        simple = choices.online(simple)
    if schedule.moments:
        simple = choices.moments(simple)
    return simple


class _Stages:
    """Stages in order: folds that are cut or can't be placed are stored in scratch by a stage of their own first."""

    def __init__(self, schedule: Schedule, scratch: list[Buffer]) -> None:
        self.schedule = schedule
        self.scratch = scratch

    def statements(self, targets: Sequence[Target]) -> tuple[Statement, ...]:
        """All statements for these targets. What has to be kept between them is added to the scratch buffers."""
        stages = self._stages(targets)
        placing = Placing(self.schedule, frozenset((*self.scratch, *self._staying(targets))))
        return tuple(statement for stage in stages for statement in placing.place(stage))

    def _staying(self, targets: Sequence[Target]) -> list[Buffer]:
        """Outputs that the last cache holds together with all that is read: the next reader finds them there."""
        read = {node.buffer for target in targets for node in walk(target.body) if isinstance(node, Load)}
        outputs = [target.buffer for target in targets]
        if read & set(outputs):
            return outputs
        return outputs if sum(buffer.bytes for buffer in {*read, *outputs}) < self.schedule.resident else []

    def _stages(self, targets: Sequence[Target]) -> list[tuple[Target, ...]]:
        stages: list[tuple[Target, ...]] = []
        last = [replace(target, body=self._blocked(target.body)) for target in targets]
        while (found := self._next_to_store(last)) is not None:
            stage, table = self._stored_scan(found) if isinstance(found, Scan) else self._storing(found, last)
            stages.append(respelled(stage))
            last = [replace(target, body=replace_nodes(target.body, table)) for target in last]
        stages.append(tuple(last))
        return stages

    def _next_to_store(self, targets: Sequence[Target]) -> Fold | Scan | None:
        """The innermost fold or scan that wants a stage of its own: a fold to be cut, one that no loop order has a place
        for, and all but scans along one axis that are read by a target without folds."""
        for target in targets:
            found = _first_beside_scans(target.body)
            if found is not None:
                return found
            for node in walk(target.body):
                if isinstance(node, Fold) and self._to_cut(node) is not None:
                    return node.whole
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

    def _storing(self, fold: Fold, among: Sequence[Target]) -> tuple[list[Target], dict[Expr, Expr]]:
        cut = self._to_cut(fold)
        if cut is None:
            return self._stored_whole(fold)
        together = self._cut_alike(fold, among)
        (piece, place), spelled = split_folds(together, *cut)
        bound = tuple(axis for one in fold.bound for axis in ((place,) if one == cut[0] else (one,)) if axis.extent > 1)
        stage: list[Target] = []
        table: dict[Expr, Expr] = {}
        for one, parts in zip(together, spelled, strict=True):
            inner = [Fold(one.monoid, bound, parts, i) for i in range(len(parts))]
            targets, loads = self._into_scratch(inner, (*_ordered(fold.axes), piece))
            stage += targets
            wide = one.monoid == "sum" and one.dtype == "float32"
            partial = tuple(Op("cast", (load,), "float64") if wide else load for load in loads)
            for i in range(len(parts)):
                total: Expr = Fold(one.monoid, (piece,), partial, i)
                table[Fold(one.monoid, one.bound, one.parts, i)] = Op("cast", (total,), "float32") if wide else total
        return stage, table

    def _cut_alike(self, fold: Fold, among: Sequence[Target]) -> list[Fold]:
        """This fold and those over the same points that need none of it or of each other: one pass serves them all."""
        found = {fold: None}
        for node in walk(*(target.body for target in among)):
            if not isinstance(node, Fold) or node.whole in found:
                continue
            inside = any(isinstance(one, Fold) and self._to_cut(one) is not None for one in walk(*node.parts))
            if not inside and node.axes == fold.axes and node.bound == fold.bound and self._to_cut(node):
                found[node.whole] = None
        return list(found)

    def _stored_whole(self, fold: Fold) -> tuple[list[Target], dict[Expr, Expr]]:
        every = [Fold(fold.monoid, fold.bound, fold.parts, i) for i in range(len(fold.parts))]
        stage, loads = self._into_scratch(every, _ordered(fold.axes))
        return stage, dict(zip(every, loads, strict=True))

    def _stored_scan(self, scan: Scan) -> tuple[list[Target], dict[Expr, Expr]]:
        """The scan at every place of its axis, read at the one that is wanted."""
        others = _ordered(scan.part.axes - {scan.bound})
        along = fresh(scan.bound, (scan.bound, *others))
        whole = Scan(scan.monoid, scan.bound, Index.of(along), scan.part)
        stage, (load,) = self._into_scratch([whole], (*others, along))
        return stage, {scan: substitute(load, {along: scan.at})}

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
            (piece, place), (parts,) = split_folds([node], axis, pieces)
            bound = tuple(one for old in node.bound if (one := place if old == axis else old).extent > 1)
            inner = Op("cast", (Fold("sum", bound, parts),), "float64")
            return Op("cast", (Fold("sum", (piece,), (inner,)),), "float32")

        return transform(body, change)


def _first_beside_scans(body: Expr) -> Fold | Scan | None:
    """What is to be stored so that an expression with scans can be written as one loop, the innermost first."""
    nodes = list(walk(body))
    scans = [node for node in nodes if isinstance(node, Scan)]
    within = {node for scan in scans for node in walk(scan.part)}
    for node in nodes:
        if node in within and isinstance(node, Fold | Scan):
            return node.whole if isinstance(node, Fold) else node
    if scans and (any(isinstance(node, Fold) for node in nodes) or scanned_axis(body) is None):
        alone = len(scans) == 1 and body is scans[0] and scanned_axis(body) is not None
        return None if alone else scans[0]
    return None


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
