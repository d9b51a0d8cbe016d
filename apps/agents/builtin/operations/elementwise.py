"""Operations on each element: arithmetic, comparisons, choices, conversions, activation functions."""

from __future__ import annotations

import math
from collections.abc import Callable

from apps.agents.builtin.form import COMPUTED, FLOATS, Const, Def, Expr, Op, axes_of
from apps.agents.builtin.reading import (
    Call,
    cast,
    element,
    lowers,
    number,
    op,
    pointwise,
    promoted,
)
from apps.agents.words import CannotWrite

SAME_NAME = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "sigmoid", "neg", "abs", "sign", "floor", "ceil",
    "trunc", "round",
)  # fmt: skip


def _unary(name: str, body: Callable[[Expr], Expr]) -> None:
    @lowers(name)
    def lower(call: Call) -> Def:
        return pointwise(call.out, body, call.tensor(0))


for _name in SAME_NAME:
    _unary(_name, lambda x, name=_name: op(name, x))  # type: ignore[misc]
_unary("rsqrt", lambda x: op("div", number(1, x), op("sqrt", x)))
_unary("reciprocal", lambda x: op("div", number(1, x), x))
_unary("square", lambda x: op("mul", x, x))
_unary("sgn", lambda x: op("sign", x))
_unary("relu", lambda x: op("maximum", x, number(0, x)))
_unary("frac", lambda x: op("sub", x, op("trunc", x)))


def _binary(name: str, operation: str) -> None:
    @lowers(name)
    def lower(call: Call) -> Def:
        return pointwise(call.out, lambda a, b: op(operation, a, b), call.arg(0), call.arg(1))


for _name, _operation in {
    "mul": "mul", "maximum": "maximum", "minimum": "minimum", "atan2": "atan2", "fmod": "fmod",
    "remainder": "remainder", "floor_divide": "floor_divide",
    "bitwise_and": "and", "bitwise_or": "or", "bitwise_xor": "xor",
}.items():  # fmt: skip
    _binary(_name, _operation)


def _comparison(name: str, body: Callable[[Expr, Expr], Expr]) -> None:
    @lowers(name)
    def lower(call: Call) -> Def:
        a, b = call.arg(0), call.arg(1)
        return pointwise(call.out, body, a, b, dtype=promoted(a, b))


def _compare(name: str, a: Expr, b: Expr) -> Expr:
    return Op(name, (a, b), "bool")


_comparison("lt", lambda a, b: _compare("lt", a, b))
_comparison("le", lambda a, b: _compare("le", a, b))
_comparison("gt", lambda a, b: _compare("lt", b, a))
_comparison("ge", lambda a, b: _compare("le", b, a))
_comparison("eq", lambda a, b: _compare("eq", a, b))
_comparison("ne", lambda a, b: _compare("ne", a, b))


def _logical(name: str, operation: str) -> None:
    @lowers(name)
    def lower(call: Call) -> Def:
        return pointwise(call.out, lambda *args: Op(operation, args, "bool"), *call.args, dtype="bool")


for _name, _operation in {"logical_and": "and", "logical_or": "or", "logical_xor": "xor", "logical_not": "not"}.items():
    _logical(_name, _operation)


@lowers("bitwise_not")
def bitwise_not(call: Call) -> Def:
    """Not of a truth value; -1 - x of a number."""
    if call.out.dtype == "bool":
        return pointwise(call.out, lambda x: Op("not", (x,), "bool"), call.tensor(0))
    return pointwise(call.out, lambda x: op("sub", number(-1, x), x), call.tensor(0))


@lowers("isnan")
def isnan(call: Call) -> Def:
    """Whether it is not a number."""
    return pointwise(call.out, lambda x: _compare("ne", x, x), call.tensor(0), dtype=promoted(call.tensor(0)))


@lowers("isinf")
def isinf(call: Call) -> Def:
    """Whether it is infinite."""

    def body(x: Expr) -> Expr:
        if x.dtype not in FLOATS:
            return Const(False, "bool")
        return _compare("eq", op("abs", x), number(math.inf, x))

    return pointwise(call.out, body, call.tensor(0), dtype=promoted(call.tensor(0)))


@lowers("add", "sub")
def add(call: Call) -> Def:
    """a + alpha b, a - alpha b."""
    name = "sub" if call.node.op.startswith("aten.sub") else "add"
    alpha = call.kwargs.get("alpha", call.arg(2, 1))

    def body(a: Expr, b: Expr) -> Expr:
        if a.dtype == "bool":
            return Op("or", (a, b), "bool")
        return op(name, a, b if alpha in (None, 1) else op("mul", b, number(alpha, b)))

    return pointwise(call.out, body, call.arg(0), call.arg(1))


@lowers("div")
def div(call: Call) -> Def:
    """a / b, rounded where a rounding mode says so."""
    mode = call.kwargs.get("rounding_mode", call.arg(2))

    def body(a: Expr, b: Expr) -> Expr:
        if mode == "floor":
            return op("floor_divide", a, b)
        quotient = op("div", a, b)
        return op("trunc", quotient) if mode == "trunc" and a.dtype in FLOATS else quotient

    return pointwise(call.out, body, call.arg(0), call.arg(1))


@lowers("fmin", "fmax")
def ignoring_nan(call: Call) -> Def:
    """The smaller or larger one, of a number and NaN the number."""
    name = "minimum" if call.node.op.startswith("aten.fmin") else "maximum"

    def body(a: Expr, b: Expr) -> Expr:
        return op("select", _compare("ne", b, b), a, op("select", _compare("ne", a, a), b, op(name, a, b)))

    return pointwise(call.out, body, call.arg(0), call.arg(1))


@lowers("pow")
def pow_(call: Call) -> Def:
    """a to the power b; small whole and half powers as products and roots."""
    exponent = call.arg(1)
    if isinstance(exponent, Def):
        return pointwise(call.out, lambda a, b: op("pow", a, b), call.arg(0), exponent)

    def body(a: Expr) -> Expr:
        return power(a, exponent)

    return pointwise(call.out, body, call.arg(0))


def power(a: Expr, exponent: float) -> Expr:
    """a to a constant power."""
    if exponent == 0:
        return number(1, a)
    if exponent == 0.5:
        return op("sqrt", a)
    if exponent == -0.5:
        return op("div", number(1, a), op("sqrt", a))
    if float(exponent).is_integer() and abs(exponent) <= 8 and (exponent > 0 or a.dtype in FLOATS):
        made, left, square = None, abs(int(exponent)), a
        while left:
            if left & 1:
                made = square if made is None else op("mul", made, square)
            left >>= 1
            square = op("mul", square, square) if left else square
        assert made is not None
        return made if exponent > 0 else op("div", number(1, a), made)
    return op("pow", a, number(exponent, a))


@lowers("clamp", "clamp_min", "clamp_max", "hardtanh")
def clamp(call: Call) -> Def:
    """Held between two bounds, each a number, a tensor or missing. NaN stays NaN."""
    low, high = call.arg(1), call.arg(2)
    if call.node.op.startswith("aten.clamp_max"):
        low, high = None, call.arg(1)
    axes, dtype = axes_of(call.out.shape), COMPUTED[call.out.dtype]
    body = element(call.arg(0), axes, dtype)
    if low is not None:
        body = op("maximum", body, element(low, axes, dtype))
    if high is not None:
        body = op("minimum", body, element(high, axes, dtype))
    return Def(axes, body, call.out.dtype)


@lowers("where")
def where(call: Call) -> Def:
    """One or the other, by a condition."""
    if len(call.args) != 3:
        raise CannotWrite(f"{call.node.op} gives a result whose size depends on values.")
    axes, dtype = axes_of(call.out.shape), COMPUTED[call.out.dtype]
    condition = element(call.arg(0), axes, "bool")
    body = op("select", condition, element(call.arg(1), axes, dtype), element(call.arg(2), axes, dtype))
    return Def(axes, body, call.out.dtype)


@lowers("_to_copy", "to", "type_as")
def to_copy(call: Call) -> Def:
    """Another dtype; a float of fewer bits rounds what follows too."""
    source, dtype = call.tensor(0), call.out.dtype
    axes = axes_of(call.out.shape)
    body = element(source, axes)
    if dtype == "bool" and body.dtype != "bool":
        body = _compare("ne", body, number(0, body))
    body = cast(body, COMPUTED[dtype])
    if dtype in ("bfloat16", "float16") and source.dtype != dtype:
        body = op(f"round_{dtype}", body)
    return Def(axes, body, dtype)


@lowers("alias", "clone", "detach", "lift_fresh_copy", "contiguous")
def same(call: Call) -> Def:
    """The value itself."""
    return call.tensor(0)


@lowers("gelu")
def gelu(call: Call) -> Def:
    """x Phi(x), exactly or by its tanh approximation."""

    def body(x: Expr) -> Expr:
        half = op("mul", x, number(0.5, x))
        if call.kwargs.get("approximate", call.arg(1)) == "tanh":
            inner = op("add", x, op("mul", op("mul", op("mul", x, x), x), number(0.044715, x)))
            curve = op("tanh", op("mul", inner, number(math.sqrt(2 / math.pi), x)))
        else:
            curve = op("erf", op("mul", x, number(math.sqrt(0.5), x)))
        return op("mul", half, op("add", curve, number(1, x)))

    return pointwise(call.out, body, call.tensor(0))


@lowers("leaky_relu")
def leaky_relu(call: Call) -> Def:
    """x where positive, else a fraction of it."""
    slope = call.arg(1, 0.01)
    return pointwise(
        call.out,
        lambda x: op("select", _compare("lt", number(0, x), x), x, op("mul", x, number(slope, x))),
        call.tensor(0),
    )


@lowers("elu")
def elu(call: Call) -> Def:
    """scale x where positive, else scale alpha (exp(input_scale x) - 1)."""
    alpha, scale, inner = (1 if arg is None else arg for arg in (call.arg(1), call.arg(2), call.arg(3)))

    def body(x: Expr) -> Expr:
        negative = op("mul", op("expm1", op("mul", x, number(inner, x))), number(alpha * scale, x))
        return op("select", _compare("lt", number(0, x), x), op("mul", x, number(scale, x)), negative)

    return pointwise(call.out, body, call.tensor(0))
