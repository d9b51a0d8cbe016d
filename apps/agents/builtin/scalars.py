"""The scalar operations of the form: what each computes, and about how much work it is.

`evaluate` is the definition, in Python's float64 and unbounded integers; the interpreter and constant folding use it.
`work` counts the arithmetic instructions of a vectorised version, `library` those of a call per element (both about).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Number = float | int | bool


@dataclass(frozen=True)
class Scalar:
    """One operation: its definition and its work. `library` is 0 where no function call is ever needed."""

    evaluate: Callable[..., Number]
    work: float = 1.0
    library: float = 0.0


def _safely(function: Callable[[float], float], outside: Callable[[float], float]) -> Callable[[float], float]:
    """IEEE's answers where Python raises."""

    def evaluate(x: float) -> float:
        try:
            return function(x)
        except (ValueError, OverflowError, ZeroDivisionError):
            return outside(x)

    return evaluate


def _nan(_: float) -> float:
    return math.nan


def _log_outside(x: float) -> float:
    return -math.inf if x == 0 else math.nan


def divide(a: float, b: float) -> float:
    """IEEE division."""
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a) or math.isnan(b):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def power(a: float, b: float) -> float:
    """IEEE power."""
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:
        return math.nan if a < 0 else math.inf


def maximum(a: Number, b: Number) -> Number:
    """The larger one; NaN if either is."""
    return a if a != a or a > b else b


def minimum(a: Number, b: Number) -> Number:
    """The smaller one; NaN if either is."""
    return a if a != a or a < b else b


def sigmoid(x: float) -> float:
    """1 / (1 + exp(-x)) without overflow."""
    return 1 / (1 + math.exp(-x)) if x >= 0 or x != x else math.exp(x) / (1 + math.exp(x))


def _rounded(x: float) -> float:
    return float(round(x)) if math.isfinite(x) else x


def _whole(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(float(function(x)), x) if math.isfinite(x) else x


def _floor_divide(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a // b if b else 0
    return _whole(math.floor)(divide(float(a), float(b)))


def _remainder(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a % b if b else 0
    return a - b * _whole(math.floor)(divide(float(a), float(b)))


_EXP = _safely(math.exp, lambda x: math.inf)

SCALARS: dict[str, Scalar] = {
    "add": Scalar(lambda a, b: a + b),
    "sub": Scalar(lambda a, b: a - b),
    "mul": Scalar(lambda a, b: a * b),
    "div": Scalar(divide, 8),
    "neg": Scalar(lambda a: -a),
    "abs": Scalar(abs),
    "sqrt": Scalar(_safely(math.sqrt, _nan), 10),
    "maximum": Scalar(maximum, 3),
    "minimum": Scalar(minimum, 3),
    "lt": Scalar(lambda a, b: a < b),
    "le": Scalar(lambda a, b: a <= b),
    "eq": Scalar(lambda a, b: a == b),
    "ne": Scalar(lambda a, b: a != b),
    "and": Scalar(lambda a, b: a & b),
    "or": Scalar(lambda a, b: a | b),
    "xor": Scalar(lambda a, b: a ^ b),
    "not": Scalar(lambda a: not a),
    "select": Scalar(lambda c, a, b: a if c else b),
    "cast": Scalar(lambda a: a, 1),
    "round_bfloat16": Scalar(lambda a: a, 4),
    "round_float16": Scalar(lambda a: a, 2),
    "sign": Scalar(lambda a: (a > 0) - (a < 0), 3),
    "floor": Scalar(_whole(math.floor), 3, 6),
    "ceil": Scalar(_whole(math.ceil), 3, 6),
    "trunc": Scalar(_whole(math.trunc), 3, 6),
    "round": Scalar(_rounded, 3, 6),
    "floor_divide": Scalar(_floor_divide, 12, 20),
    "remainder": Scalar(_remainder, 14, 30),
    "fmod": Scalar(lambda a, b: math.fmod(a, b) if b else math.nan, 14, 30),
    "exp": Scalar(_EXP, 14, 22),
    "exp2": Scalar(_safely(lambda x: 2.0**x, lambda x: math.inf), 14, 22),
    "expm1": Scalar(_safely(math.expm1, lambda x: math.inf), 26, 40),
    "log": Scalar(_safely(math.log, _log_outside), 20, 24),
    "log2": Scalar(_safely(math.log2, _log_outside), 21, 24),
    "log10": Scalar(_safely(math.log10, _log_outside), 21, 30),
    "log1p": Scalar(_safely(math.log1p, lambda x: -math.inf if x == -1 else math.nan), 32, 40),
    "sin": Scalar(_safely(math.sin, _nan), 24, 36),
    "cos": Scalar(_safely(math.cos, _nan), 24, 36),
    "tan": Scalar(_safely(math.tan, _nan), 50, 50),
    "asin": Scalar(_safely(math.asin, _nan), 40, 40),
    "acos": Scalar(_safely(math.acos, _nan), 40, 40),
    "atan": Scalar(math.atan, 40, 40),
    "atan2": Scalar(math.atan2, 60, 60),
    "sinh": Scalar(_safely(math.sinh, lambda x: math.copysign(math.inf, x)), 40, 50),
    "cosh": Scalar(_safely(math.cosh, lambda x: math.inf), 40, 50),
    "tanh": Scalar(math.tanh, 28, 46),
    "asinh": Scalar(math.asinh, 50, 60),
    "acosh": Scalar(_safely(math.acosh, _nan), 50, 60),
    "atanh": Scalar(_safely(math.atanh, lambda x: math.copysign(math.inf, x) if abs(x) == 1 else math.nan), 50, 60),
    "erf": Scalar(math.erf, 24, 60),
    "erfc": Scalar(math.erfc, 60, 80),
    "sigmoid": Scalar(sigmoid, 24, 32),
    "pow": Scalar(power, 60, 80),
}


def evaluate(name: str, *args: Any) -> Number:
    """The operation's value for these numbers."""
    return SCALARS[name].evaluate(*args)


def calls_library(name: str) -> bool:
    """Whether the plain way to compute it is a function of the mathematics library for each element."""
    return SCALARS[name].library > 0
