"""Rewrite rules that trade one cost for another: a schedule asks for them by name."""

from __future__ import annotations

import math
from collections.abc import Sequence

from apps.agents.builtin.form import FLOATS, Const, Expr, Fold, Op, transform, walk
from apps.agents.builtin.index import Axis
from apps.agents.builtin.rules import Rule, number, operation, simplified


def hoist_reciprocal(node: Expr) -> Expr | None:
    """x / s is x * (1 / s) where s varies along fewer axes, so that 1 / s is computed less often."""
    if not isinstance(node, Op) or node.name != "div" or node.dtype not in FLOATS:
        return None
    a, b = node.args
    if b.axes < a.axes and not isinstance(b, Const):
        return operation("mul", a, operation("div", number(1, b), b))
    return None


def online_soft_max(node: Expr) -> Expr | None:
    """sum(exp(x - max(x))) over the same axes: both in one pass, rescaled whenever the largest grows."""
    if not isinstance(node, Fold) or node.monoid != "sum":
        return None
    e = node.parts[0]
    if not isinstance(e, Op) or e.name != "exp" or not isinstance(e.args[0], Op) or e.args[0].name != "sub":
        return None
    x, top = e.args[0].args
    if isinstance(top, Fold) and top.monoid == "max" and top.bound == node.bound and top.parts[0] is x:
        return Fold("max_sum", node.bound, (x, number(1, x)), 1)
    return None


def one_pass_moments(node: Expr) -> Expr | None:
    """sum((x - m)^2) with m the mean over the same axes is sum(x^2) - m sum(x): one pass.

    In twice the precision, because the difference cancels: at float64's 53 bits a mean of 10^4 deviations still leaves
    the variance of float32 data right to its last bits. Not for float64 data.
    """
    if not isinstance(node, Fold) or node.monoid != "sum" or node.dtype != "float32":
        return None
    square = node.parts[0]
    if not isinstance(square, Op) or square.name != "mul" or square.args[0] is not square.args[1]:
        return None
    away = square.args[0]
    if not isinstance(away, Op) or away.name != "sub":
        return None
    x, mean = away.args
    count = math.prod(axis.extent for axis in node.bound)
    if not _is_mean(mean, x, node.bound, count):
        return None
    wide = Op("cast", (x,), "float64")
    total = Fold("sum", node.bound, (wide,))
    squares = Fold("sum", node.bound, (operation("mul", wide, wide),))
    spread = operation("sub", squares, operation("mul", operation("mul", total, total), Const(1.0 / count, "float64")))
    return Op("cast", (operation("maximum", spread, Const(0.0, "float64")),), "float32")


def _is_mean(mean: Expr, x: Expr, bound: tuple[Axis, ...], count: int) -> bool:
    if not isinstance(mean, Op) or mean.name not in ("mul", "div"):
        return False
    total, by = mean.args
    factor = 1.0 / count if mean.name == "mul" else float(count)
    if not isinstance(by, Const) or not math.isclose(float(by.value), factor, rel_tol=1e-9):
        return False
    return isinstance(total, Fold) and total.monoid == "sum" and total.bound == bound and total.parts[0] is x


def share_soft_max(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """Where the pair (max, sum) is folded in one pass, the largest element alone is read from that pair too."""
    pairs = {(n.bound, n.parts[0]): n for n in walk(*roots) if isinstance(n, Fold) and n.monoid == "max_sum"}

    def change(node: Expr) -> Expr:
        if isinstance(node, Fold) and node.monoid == "max":
            pair = pairs.get((node.bound, node.parts[0]))
            return pair.whole if pair is not None else node
        return node

    return tuple(transform(root, change) for root in roots)


def share_moments(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """Where a sum is folded in float64 for a variance, the sum in float32 is that one, rounded."""
    wide = {}
    for node in walk(*roots):
        if isinstance(node, Fold) and node.monoid == "sum" and node.dtype == "float64":
            part = node.parts[0]
            if isinstance(part, Op) and part.name == "cast":
                wide[node.bound, part.args[0]] = node

    def change(node: Expr) -> Expr:
        if isinstance(node, Fold) and node.monoid == "sum" and node.dtype == "float32":
            found = wide.get((node.bound, node.parts[0]))
            return Op("cast", (found,), "float32") if found is not None else node
        return node

    return tuple(transform(root, change) for root in roots)


def online(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """Soft-max's two folds in one pass."""
    rule = [Rule("one-pass soft-max", online_soft_max)]
    return share_soft_max([simplified(root, rule) for root in roots])


def moments(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """Mean and variance in one pass."""
    rule = [Rule("one-pass moments", one_pass_moments)]
    return share_moments([simplified(root, rule) for root in roots])


def reciprocals(roots: Sequence[Expr]) -> tuple[Expr, ...]:
    """One division where many elements have the same divisor."""
    return tuple(simplified(root, [Rule("hoist the reciprocal", hoist_reciprocal)]) for root in roots)
