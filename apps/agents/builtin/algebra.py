"""Products that need not be made: what is read of them costs less when it is computed from the operands.

A product is a sum over the axis that its operands share. A sum over the product's rows or columns joins that sum, and
then goes first over the operand that alone depends on it; of a diagonal matrix only one term is left. Each product is
tried in turn, and the one way or the other is kept by the count of operations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from apps.agents.builtin.form import (
    FLOATS,
    Def,
    Expr,
    Fold,
    Load,
    Op,
    Position,
    is_number,
    substitute,
    transform,
    walk,
)
from apps.agents.builtin.index import Axis, Index, unjoined
from apps.agents.builtin.reading import LibraryCall, Meaning
from apps.agents.builtin.rules import SIMPLIFY, Rule, operation, simplified

# Operations of a library's product in the time of one of a loop of ours.
LIBRARY_ADVANTAGE = 4.0


def reduced(meaning: Meaning) -> Meaning:
    """The meaning without products that cost more than what is read of them, nor anything that nobody reads."""
    values = [*(value.body for value in meaning.outputs), *(operand.value.body for operand in meaning.operands)]
    for call in reversed(meaning.calls):
        if call.means is None or any(call.result.name in other.reads for other in meaning.calls):
            continue
        spelled = [_without(body, call) for body in values]
        if spelled != values and sum(map(_work, spelled)) < sum(map(_work, values)) + call.flops / LIBRARY_ADVANTAGE:
            values = spelled
    count = len(meaning.outputs)
    outputs = tuple(replace(value, body=body) for value, body in zip(meaning.outputs, values[:count], strict=True))
    operands = tuple(
        replace(operand, value=replace(operand.value, body=body))
        for operand, body in zip(meaning.operands, values[count:], strict=True)
    )
    return _needed(replace(meaning, outputs=outputs, operands=operands))


def _needed(meaning: Meaning) -> Meaning:
    """Without calls and operands that nothing reads."""
    wanted = _read_by(meaning.outputs)
    made = {operand.fact.name: operand for operand in meaning.operands}
    calls: list[LibraryCall] = []
    for call in reversed(meaning.calls):
        if call.result.name in wanted:
            calls.insert(0, call)
            wanted |= set(call.reads)
            wanted |= _read_by([made[name].value for name in call.reads if name in made])
    operands = tuple(operand for operand in meaning.operands if operand.fact.name in wanted)
    return replace(meaning, calls=tuple(calls), operands=operands)


def _read_by(values: Sequence[Def]) -> set[str]:
    """Buffers by name, of what is left when lowering has simplified it."""
    return {node.buffer.name for value in values for node in walk(simplified(value.body)) if isinstance(node, Load)}


def _without(body: Expr, call: LibraryCall) -> Expr:
    """The expression with the product spelled as what it means, simplified."""
    assert call.means is not None
    means, shape = call.means, call.means.shape

    def spell(node: Expr) -> Expr:
        if not isinstance(node, Load) or node.buffer.name != call.result.name or node.guards:
            return node
        return means.at(unjoined(node.offset, shape))

    spelled = transform(body, spell)
    return body if spelled is body else simplified(spelled, ALGEBRA)


def _work(body: Expr) -> float:
    """Operations of an expression for each point of the axes that it and its folds go over, each fold once."""
    total = _operations(body) * _points(body.axes)
    for node in walk(body):
        if isinstance(node, Fold):
            here = node.axes | frozenset(node.bound)
            total += (1 + sum(_operations(part) for part in node.parts)) * _points(here)
    return total


def _points(axes: frozenset[Axis]) -> float:
    return float(math.prod(axis.extent for axis in axes))


def _operations(body: Expr) -> int:
    return sum(1 for node in walk(body, folds=False) if isinstance(node, Op))


# --- rules ------------------------------------------------------------------------------------------------------


def sum_of_sum(node: Expr) -> Expr | None:
    """The sum of a + b is the sum of a plus the sum of b, where that lets a fold within one of them join."""
    if not isinstance(node, Fold) or node.monoid != "sum" or node.dtype not in FLOATS:
        return None
    part = node.parts[0]
    if not isinstance(part, Op) or part.name not in ("add", "sub"):
        return None
    if not any(isinstance(one, Fold) for arg in part.args for one in _factors(arg)):
        return None
    return operation(part.name, *(Fold("sum", node.bound, (arg,)) for arg in part.args))


def push_sum(node: Expr) -> Expr | None:
    """A factor that depends on some of the axes summed over is applied to the sum over the others."""
    if not isinstance(node, Fold) or node.monoid != "sum" or node.dtype not in FLOATS:
        return None
    factors, bound = _factors(node.parts[0]), frozenset(node.bound)
    for factor in factors:
        others = bound - factor.axes
        if not others or others == bound or len(factors) < 2:
            continue
        left = [one for one in factors if one is not factor]
        inner = Fold("sum", tuple(axis for axis in node.bound if axis in others), (_product(left),))
        if inner.axes.isdisjoint(bound - others):
            continue
        return Fold("sum", tuple(a for a in node.bound if a not in others), (operation("mul", inner, factor),))
    return None


def pick_term(node: Expr) -> Expr | None:
    """Of a sum over terms that are 0 but where an axis has one value, the term at that value."""
    if not isinstance(node, Fold) or node.monoid != "sum":
        return None
    factors = _factors(node.parts[0])
    for factor in factors:
        if not isinstance(factor, Op) or factor.name != "select" or not is_number(factor.args[2], 0):
            continue
        for axis in node.bound:
            value = _value_where(factor.args[0], axis)
            if value is None:
                continue
            left = _product([factor.args[1] if one is factor else one for one in factors])
            bound = tuple(one for one in node.bound if one != axis)
            term = substitute(left, {axis: value})
            return Fold("sum", bound, (term,)) if bound else term
    return None


def _value_where(condition: Expr, axis: Axis) -> Index | None:
    """The value of an axis at which an equation of places holds, where there is always just one."""
    if not isinstance(condition, Op) or condition.name != "eq":
        return None
    a, b = (_place(arg) for arg in condition.args)
    if a is None or b is None:
        return None
    apart = a - b
    step = apart.coefficient(axis)
    if step not in (1, -1):
        return None
    value = (apart - Index.of(axis) * step) * -step
    low, high = value.range()
    return value if low >= 0 and high < axis.extent else None


def _place(node: Expr) -> Index | None:
    while isinstance(node, Op) and node.name == "cast":
        node = node.args[0]
    return node.index if isinstance(node, Position) else None


def _factors(node: Expr) -> list[Expr]:
    """The factors of a product of products."""
    if isinstance(node, Op) and node.name == "mul":
        return [one for arg in node.args for one in _factors(arg)]
    return [node]


def _product(factors: Sequence[Expr]) -> Expr:
    made = factors[0]
    for factor in factors[1:]:
        made = operation("mul", made, factor)
    return made


ALGEBRA: tuple[Rule, ...] = (
    *SIMPLIFY,
    Rule("one term of a diagonal", pick_term),
    Rule("sum of a sum", sum_of_sum),
    Rule("sum first over what depends on it", push_sum),
)
