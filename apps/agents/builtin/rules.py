"""Rewrite rules: each turns one expression into another of the same value (beyond rounding) that costs less.

All of `SIMPLIFY` always help and are always applied; `choices` are those that a schedule asks for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apps.agents.builtin.form import (
    FLOATS,
    Const,
    Expr,
    Fold,
    Op,
    Position,
    finite,
    fresh,
    is_number,
    rebuild,
    substitute,
    transform,
)
from apps.agents.builtin.index import Axis, Index
from apps.agents.builtin.scalars import evaluate


@dataclass(frozen=True)
class Rule:
    """`apply` gives the new expression, or None where the rule does not fit."""

    name: str
    apply: Callable[[Expr], Expr | None]


def simplified(node: Expr, rules: Sequence[Rule] | None = None) -> Expr:
    """The expression with rules applied wherever they fit, children first, until none does."""
    for _ in range(MOST_REWRITES):
        new = _one_sweep(node, SIMPLIFY if rules is None else rules)
        if new is node:
            break
        node = new
    return node


def _one_sweep(node: Expr, chosen: Sequence[Rule]) -> Expr:

    def change(one: Expr) -> Expr:
        for _ in range(MOST_REWRITES):
            for rule in chosen:
                new = rule.apply(one)
                if new is not None and new is not one:
                    one = rebuild(new, lambda child: simplified_once(child, chosen))
                    break
            else:
                return one
        return one

    return transform(node, change)


def simplified_once(node: Expr, rules: Sequence[Rule]) -> Expr:
    """The node after the first rule that fits its top."""
    for rule in rules:
        new = rule.apply(node)
        if new is not None:
            return new
    return node


MOST_REWRITES = 20


def operation(name: str, *args: Expr) -> Expr:
    """An operation of its last operand's type."""
    return Op(name, args, args[-1].dtype)


def number(value: float, like: Expr) -> Const:
    """A constant of another node's type."""
    return Const(float(value) if like.dtype in FLOATS else int(value), like.dtype)


# --- always -----------------------------------------------------------------------------------------------------


def fold_constants(node: Expr) -> Expr | None:
    """An operation on numbers is a number."""
    if not isinstance(node, Op) or not all(isinstance(arg, Const) for arg in node.args):
        return None
    if node.name in ("round_bfloat16", "round_float16"):
        return None
    value = evaluate(node.name, *(arg.value for arg in node.args if isinstance(arg, Const)))
    if node.dtype == "bool":
        return Const(bool(value), "bool")
    if node.dtype in FLOATS:
        return Const(float(value), node.dtype)
    return Const(int(value), node.dtype) if finite(value) else None


def drop_neutral(node: Expr) -> Expr | None:
    """x + 0, x - 0, x * 1, x / 1 are x."""
    if not isinstance(node, Op) or len(node.args) != 2:
        return None
    a, b = node.args
    if node.name in ("add", "sub") and is_number(b, 0):
        return a
    if node.name in ("mul", "div") and is_number(b, 1):
        return a
    if (node.name == "add" and is_number(a, 0)) or (node.name == "mul" and is_number(a, 1)):
        return b
    return None


def choose_known(node: Expr) -> Expr | None:
    """A choice whose condition is known, or whose sides are the same; a truth value with a known side."""
    if not isinstance(node, Op):
        return None
    if node.name == "select":
        condition, a, b = node.args
        if isinstance(condition, Const):
            return a if condition.value else b
        return a if a is b else None
    if node.name in ("and", "or") and node.dtype == "bool":
        for known, other in (node.args, node.args[::-1]):
            if isinstance(known, Const):
                keeps = bool(known.value) == (node.name == "and")
                return other if keeps else known
    if node.name == "not" and isinstance(node.args[0], Op) and node.args[0].name == "not":
        return node.args[0].args[0]
    return None


def divide_by_constant(node: Expr) -> Expr | None:
    """x / c is x * (1 / c): one rounding more, a tenth of the time."""
    if not isinstance(node, Op) or node.name != "div" or node.dtype not in FLOATS:
        return None
    a, b = node.args
    if isinstance(b, Const) and b.value and finite(b.value) and not isinstance(a, Const):
        inverse = 1.0 / float(b.value)
        return operation("mul", a, number(inverse, a)) if 1e-37 < abs(inverse) < 1e37 else None
    return None


def join_casts(node: Expr) -> Expr | None:
    """A cast of a cast to a wider type is one cast."""
    if not isinstance(node, Op) or node.name != "cast":
        return None
    inner = node.args[0]
    if inner.dtype == node.dtype:
        return inner
    widening = {("bool", "int32"), ("bool", "int64"), ("bool", "float32"), ("bool", "float64"), ("int32", "int64"),
                ("int32", "float64"), ("float32", "float64")}  # fmt: skip
    if isinstance(inner, Op) and inner.name == "cast" and (inner.args[0].dtype, inner.dtype) in widening:
        return Op("cast", inner.args, node.dtype)
    return None


def join_folds(node: Expr) -> Expr | None:
    """A sum of sums is one sum; likewise for other monoids of one part."""
    if not isinstance(node, Fold) or len(node.parts) != 1:
        return None
    inner = node.parts[0]
    if not isinstance(inner, Fold) or inner.monoid != node.monoid or len(inner.parts) != 1:
        return None
    bound, part = inner.bound, inner.parts[0]
    if set(bound) & set(node.bound):
        taken = {*bound, *node.bound, *part.axes}
        new: list[Axis] = []
        for axis in bound:
            new.append(fresh(axis, taken))
            taken.add(new[-1])
        part = substitute(part, {old: Index.of(other) for old, other in zip(bound, new, strict=True)})
        bound = tuple(new)
    return Fold(node.monoid, (*node.bound, *bound), (part,))


def factor_out_of_sum(node: Expr) -> Expr | None:
    """A factor that does not depend on what is summed over is applied once, to the sum."""
    if not isinstance(node, Fold) or node.monoid != "sum" or node.dtype not in FLOATS:
        return None
    product = node.parts[0]
    if not isinstance(product, Op) or product.name != "mul":
        return None
    bound = set(node.bound)
    for factor, rest in (product.args, product.args[::-1]):
        if not (factor.axes & bound) and rest.axes & bound:
            return operation("mul", Fold("sum", node.bound, (rest,)), factor)
    return None


def sum_of_constant(node: Expr) -> Expr | None:
    """The sum of what does not depend on the axes summed over is a product."""
    if not isinstance(node, Fold) or node.monoid != "sum" or node.dtype == "bool":
        return None
    part = node.parts[0]
    if part.axes & set(node.bound):
        return None
    return operation("mul", part, number(math.prod(axis.extent for axis in node.bound), part))


def tanh_of_softplus(node: Expr) -> Expr | None:
    """tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2), also within the choice that guards soft-plus from overflow.

    In place of two more transcendental functions a quotient. With e = exp(x), tanh(x) is 1 in float32 from 9.02 on,
    where e (e + 2) is still finite; the guarded side keeps tanh of its own argument.
    """
    if not isinstance(node, Op) or node.name != "tanh" or node.dtype not in FLOATS:
        return None
    inner = node.args[0]
    if isinstance(inner, Op) and inner.name == "select" and isinstance(inner.args[2], Op):
        condition, linear, soft = inner.args
        assert isinstance(soft, Op)
        if soft.name == "log1p" and _bounded_below(condition, linear, 10):
            # Beyond the bound soft-plus is its argument and tanh of that is 1 (to the last bit of either type from 20 on).
            e = _capped_exponential(soft.args[0], 20)
            return _ratio(e) if e is not None else None
        return None
    return None


def _ratio(e: Expr) -> Expr:
    product = operation("mul", e, operation("add", e, number(2, e)))
    return operation("div", product, operation("add", product, number(2, e)))


def _capped_exponential(e: Expr, top: float) -> Expr | None:
    if isinstance(e, Op) and e.name == "exp":
        return operation("exp", operation("minimum", e.args[0], number(top, e)))
    return None


def _bounded_below(condition: Expr, linear: Expr, least: float) -> bool:
    """Whether the condition is `number < linear` with a number of at least `least`."""
    if not isinstance(condition, Op) or condition.name != "lt":
        return False
    low, high = condition.args
    return high is linear and isinstance(low, Const) and not isinstance(low.value, bool) and low.value >= least


def logistic(node: Expr) -> Expr | None:
    """1 / (1 + exp(-x)) is the logistic function, which is written without overflow."""
    if not isinstance(node, Op) or node.name != "div" or not is_number(node.args[0], 1):
        return None
    below = node.args[1]
    if not isinstance(below, Op) or below.name != "add":
        return None
    for one, e in (below.args, below.args[::-1]):
        if is_number(one, 1) and isinstance(e, Op) and e.name == "exp":
            inner = e.args[0]
            if isinstance(inner, Op) and inner.name == "neg":
                return operation("sigmoid", inner.args[0])
    return None


def log_of_share(node: Expr) -> Expr | None:
    """log(exp(x) / s) is x - log(s), with one logarithm for all that share s, and right where exp(x) is out of range."""
    if not isinstance(node, Op) or node.name != "log":
        return None
    quotient = node.args[0]
    if not isinstance(quotient, Op) or quotient.name != "div":
        return None
    e, total = quotient.args
    if not isinstance(e, Op) or e.name != "exp" or not total.axes < node.axes:
        return None
    return operation("sub", e.args[0], operation("log", total))


def tanh_plus_1(node: Expr) -> Expr | None:
    """1 + tanh(z) is twice the logistic function of 2 z: one exponential, and no cancellation where z is far below 0."""
    if not isinstance(node, Op) or node.name != "add" or node.dtype not in FLOATS:
        return None
    for one, curve in (node.args, node.args[::-1]):
        if is_number(one, 1) and isinstance(curve, Op) and curve.name == "tanh":
            z = curve.args[0]
            return operation("mul", operation("sigmoid", operation("mul", z, number(2, z))), number(2, z))
    return None


def join_factors(node: Expr) -> Expr | None:
    """Constant factors of a product become one, where none is so large or small that the order could matter."""
    if not isinstance(node, Op) or node.name != "mul" or node.dtype not in FLOATS:
        return None
    (a, by), (b, other) = (_without_factor(arg) for arg in node.args)
    if by is None and other is None:
        return None
    if isinstance(a, Const) or isinstance(b, Const):
        known, rest, factor = (a, b, other) if isinstance(a, Const) else (b, a, by)
        if factor is None or not isinstance(known, Const) or not _ordinary(known):
            return None
        return operation("mul", rest, number(factor * float(known.value), rest))
    factor = (1.0 if by is None else by) * (1.0 if other is None else other)
    return operation("mul", operation("mul", a, b), number(factor, a))


def _without_factor(node: Expr) -> tuple[Expr, float | None]:
    if isinstance(node, Op) and node.name == "mul":
        for factor, rest in (node.args, node.args[::-1]):
            if isinstance(factor, Const) and _ordinary(factor) and not isinstance(rest, Const):
                return rest, float(factor.value)
    return node, None


def _ordinary(factor: Expr) -> bool:
    return isinstance(factor, Const) and 1 / 64 <= abs(float(factor.value)) <= 64


def narrow_places(node: Expr) -> Expr | None:
    """Places are compared in 32 bits where these hold them: as many lanes as float32 has."""
    if not isinstance(node, Op) or node.name not in ("lt", "le", "eq", "ne"):
        return None
    narrow = [_narrowed(arg) for arg in node.args]
    a, b = narrow
    return Op(node.name, (a, b), "bool") if a is not None and b is not None else None


def _narrowed(node: Expr) -> Expr | None:
    if isinstance(node, Const) and node.dtype == "int64" and abs(int(node.value)) < _LIMIT:
        return Const(int(node.value), "int32")
    if isinstance(node, Position) and node.index.range()[0] > -_LIMIT and node.index.range()[1] < _LIMIT:
        return Op("cast", (node,), "int32")
    return None


_LIMIT = 1 << 31


SIMPLIFY: tuple[Rule, ...] = (
    Rule("fold constants", fold_constants),
    Rule("drop neutral operands", drop_neutral),
    Rule("choose what is known", choose_known),
    Rule("reciprocal of a constant", divide_by_constant),
    Rule("join casts", join_casts),
    Rule("join folds", join_folds),
    Rule("take factors out of sums", factor_out_of_sum),
    Rule("sum of a constant", sum_of_constant),
    Rule("tanh of soft-plus", tanh_of_softplus),
    Rule("logistic function", logistic),
    Rule("logarithm of a share", log_of_share),
    Rule("tanh and one", tanh_plus_1),
    Rule("join constant factors", join_factors),
    Rule("compare places in 32 bits", narrow_places),
)
