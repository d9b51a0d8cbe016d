"""What a definition means, element by element, in Python's own numbers: slow, short, and the oracle of everything else."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from apps.agents.builtin.form import Const, Def, Expr, Fold, Load, Name, Op, Position, Scan, zero
from apps.agents.builtin.index import Axis
from apps.agents.builtin.monoids import MONOIDS, operands
from apps.agents.builtin.scalars import Number, evaluate

Memory = Mapping[str, Sequence[Number]]
Point = dict[Axis, int]


def interpret(value: Def, memory: Memory) -> list[Number]:
    """The elements of a value in row-major order; `memory` holds each buffer's elements by name."""
    return [_evaluate(value.body, point, memory, {}, {}) for point in _points(value.axes)]


def _points(axes: Sequence[Axis]) -> Iterator[Point]:
    for indices in itertools.product(*(range(axis.extent) for axis in axes)):
        yield dict(zip(axes, indices, strict=True))


def _evaluate(
    node: Expr, point: Point, memory: Memory, names: Mapping[str, Number], known: dict[Expr, Number]
) -> Number:
    if node not in known:
        known[node] = _compute(node, point, memory, names, known)
    return known[node]


def _compute(
    node: Expr, point: Point, memory: Memory, names: Mapping[str, Number], known: dict[Expr, Number]
) -> Number:
    if isinstance(node, Const):
        return node.value
    if isinstance(node, Name):
        return names[node.name]
    if isinstance(node, Position):
        return node.index.value(point)
    if isinstance(node, Load):
        if any(not 0 <= guard.index.value(point) < guard.extent for guard in node.guards):
            return zero(node.dtype) if node.fill is None else node.fill
        return memory[node.buffer.name][node.offset.value(point)]
    if isinstance(node, Fold):
        return _folded(node, point, memory)[node.part]
    if isinstance(node, Scan):
        points = range(node.at.value(point) + 1)
        return _combined(node.monoid, (node.part,), [{**point, node.bound: i} for i in points], memory)[0]
    assert isinstance(node, Op)
    args = [_evaluate(arg, point, memory, names, known) for arg in node.args]
    return _typed(evaluate(node.name, *args), node.dtype)


def _typed(value: Number, dtype: str) -> Number:
    if dtype == "bool":
        return bool(value)
    if dtype in ("int64", "int32"):
        return int(value)
    return float(value)


def _folded(fold: Fold, point: Point, memory: Memory) -> list[Number]:
    return _combined(fold.monoid, fold.parts, [{**point, **inner} for inner in _points(fold.bound)], memory)


def _combined(monoid_name: str, parts: tuple[Expr, ...], points: Sequence[Point], memory: Memory) -> list[Number]:
    monoid = MONOIDS[monoid_name]
    dtypes = tuple(part.dtype for part in parts)
    left, right = operands(dtypes)
    combination = monoid.combine(left, right)
    total: list[Number] = [_evaluate(one, {}, memory, {}, {}) for one in monoid.identity(dtypes)]
    for point in points:
        here: dict[Expr, Number] = {}
        lifted = [_evaluate(part, point, memory, {}, here) for part in parts]
        names = {f"a{i}": value for i, value in enumerate(total)} | {f"b{i}": value for i, value in enumerate(lifted)}
        known: dict[Expr, Number] = {}
        total = [_evaluate(one, {}, memory, names, known) for one in combination]
    return total
