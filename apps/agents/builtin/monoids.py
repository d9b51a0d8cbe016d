"""Monoids: how a fold combines what single points give. Each is a tuple with an identity and a combination.

The combination is written in the form itself, over names, so that interpreter and printers read the same definition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from apps.agents.builtin.form import Const, Expr, Name, Op

Tuple = tuple[Expr, ...]


@dataclass(frozen=True)
class Monoid:
    """`identity(dtypes)` and `combine(a, b)`. `follow(a, b)`, where there is one, is cheaper: b comes after all of a."""

    name: str
    identity: Callable[[tuple[str, ...]], Tuple]
    combine: Callable[[Tuple, Tuple], Tuple]
    follow: Callable[[Tuple, Tuple], Tuple] | None = None


def _op(name: str, *args: Expr) -> Expr:
    return Op(name, args, "bool" if name in ("lt", "le", "eq", "ne", "and", "or", "not") else args[-1].dtype)


def lowest(dtype: str) -> Expr:
    """The value that a maximum starts from."""
    if dtype == "bool":
        return Const(False, "bool")
    if dtype in ("int64", "int32"):
        return Const(-(1 << (63 if dtype == "int64" else 31)), dtype)
    return Const(-math.inf, dtype)


def highest(dtype: str) -> Expr:
    """The value that a minimum starts from."""
    if dtype == "bool":
        return Const(True, "bool")
    if dtype in ("int64", "int32"):
        return Const((1 << (63 if dtype == "int64" else 31)) - 1, dtype)
    return Const(math.inf, dtype)


def _single(name: str, identity: Callable[[str], Expr], operation: str) -> Monoid:
    return Monoid(name, lambda types: (identity(types[0]),), lambda a, b: (_op(operation, a[0], b[0]),))


def _number(value: int) -> Callable[[str], Expr]:
    return lambda dtype: Const(value if dtype in ("int64", "int32") else float(value), dtype)


def _chosen(better: str) -> Callable[[Tuple, Tuple], Tuple]:
    """(value, index): the better value, the lower index among equals, NaN before everything, the first NaN first.

    With `took(a)` = a is better than b, or a is NaN and b is not; equal or both NaN: the lower index.
    """

    def combine(a: Tuple, b: Tuple) -> Tuple:
        left, right = (a[0], b[0]) if better == "max" else (b[0], a[0])
        wins = _op("lt", right, left)
        if a[0].dtype in ("float32", "float64"):
            a_nan, b_nan = _op("ne", a[0], a[0]), _op("ne", b[0], b[0])
            same = _op("or", _op("eq", a[0], b[0]), _op("and", a_nan, b_nan))
            wins = _op("or", wins, _op("and", a_nan, _op("not", b_nan)))
        else:
            same = _op("eq", a[0], b[0])
        takes = _op("or", wins, _op("and", same, _op("lt", a[1], b[1])))
        return _op("select", takes, a[0], b[0]), _op("select", takes, a[1], b[1])

    return combine


def _follows(better: str) -> Callable[[Tuple, Tuple], Tuple]:
    """As `_chosen` where b's index is the higher one: b must be better, or NaN where a is not."""

    def combine(a: Tuple, b: Tuple) -> Tuple:
        if a[0].dtype not in ("float32", "float64"):
            stays = _op("le", b[0], a[0]) if better == "max" else _op("le", a[0], b[0])
        else:
            kept = _op("le", b[0], a[0]) if better == "max" else _op("le", a[0], b[0])
            stays = _op("or", kept, _op("ne", a[0], a[0]))
        return _op("select", stays, a[0], b[0]), _op("select", stays, a[1], b[1])

    return combine


def _first(dtype: str) -> Expr:
    """The index that goes with the worst value: where nothing is better, all elements are that, and the first is at 0."""
    return Const(0, dtype)


def _max_sum(a: Tuple, b: Tuple) -> Tuple:
    """(largest, sum of exp(x - largest)): soft-max's denominator in one pass. Scales by exp of what the largest grew."""
    top = _op("maximum", a[0], b[0])
    nothing = Const(-math.inf, top.dtype)
    base = _op("select", _op("eq", top, nothing), Const(0.0, top.dtype), top)
    scaled = [_op("mul", one[1], _op("exp", _op("sub", one[0], base))) for one in (a, b)]
    return top, _op("add", scaled[0], scaled[1])


MONOIDS: dict[str, Monoid] = {
    monoid.name: monoid
    for monoid in (
        _single("sum", _number(0), "add"),
        _single("product", _number(1), "mul"),
        _single("max", lowest, "maximum"),
        _single("min", highest, "minimum"),
        Monoid("any", lambda types: (Const(False, "bool"),), lambda a, b: (_op("or", a[0], b[0]),)),
        Monoid("all", lambda types: (Const(True, "bool"),), lambda a, b: (_op("and", a[0], b[0]),)),
        Monoid("argmax", lambda types: (lowest(types[0]), _first(types[1])), _chosen("max"), _follows("max")),
        Monoid("argmin", lambda types: (highest(types[0]), _first(types[1])), _chosen("min"), _follows("min")),
        Monoid("max_sum", lambda types: (Const(-math.inf, types[0]), Const(0.0, types[1])), _max_sum),
    )
}


def operands(dtypes: tuple[str, ...]) -> tuple[Tuple, Tuple]:
    """Names for the two operands of a combination, a0, a1, .. and b0, b1, .."""
    return (
        tuple(Name(f"a{i}", dtype) for i, dtype in enumerate(dtypes)),
        tuple(Name(f"b{i}", dtype) for i, dtype in enumerate(dtypes)),
    )
