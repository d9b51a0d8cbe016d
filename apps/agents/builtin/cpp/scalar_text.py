"""How each scalar operation is spelled in C++, and which pieces of `functions` it needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from apps.agents.builtin.form import FLOATS

TYPES = {"float32": "float", "float64": "double", "int64": "int64_t", "int32": "int32_t", "bool": "bool"}
MEMORY = {
    **TYPES, "bool": "uint8_t", "bfloat16": "bfloat16", "float16": "_Float16", "int16": "int16_t", "int8": "int8_t",
    "uint8": "uint8_t",
}  # fmt: skip

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}
# Those that work on vectors of either float type as they are.
_CALLS = {
    "maximum": "maximum", "minimum": "minimum", "abs": "absolute", "sqrt": "root", "sign": "sign_of",
    "round_bfloat16": "round_bfloat16", "round_float16": "round_float16", "floor_divide": "floor_divide",
    "remainder": "floor_remainder", "select": "select", "and": "both", "or": "either", "not": "negated",
}  # fmt: skip
_NEEDS = {
    "both": "logic", "either": "logic", "negated": "logic", "round_bfloat16": "bfloat16", "round_float16": "float16",
    "floor_remainder": "floor_divide", "floor_of": "whole", "ceil_of": "whole", "cut": "whole", "round_of": "whole",
}  # fmt: skip
_WHOLE = {"floor": "floor_of", "ceil": "ceil_of", "trunc": "cut", "round": "round_of"}
_IN_LINE = {
    "exp": "exponential", "expm1": "exponential_less_1", "log": "logarithm", "log1p": "logarithm_1_plus",
    "tanh": "hyperbolic_tangent", "erf": "error_function", "sigmoid": "logistic",
}  # fmt: skip
_LIBRARY = {"round": "nearbyint", "fmod": "fmod", "atan2": "atan2", "pow": "pow"}


@dataclass(frozen=True)
class Spelling:
    """`text` with {0}, {1}, .. for operands; `needs` are pieces; `vectors`: scalars among operands must be splatted."""

    text: str
    needs: tuple[str, ...] = ()
    vectors: bool = False


def spelling(name: str, dtype: str, count: int, *, polynomials: bool, vector: bool) -> Spelling:
    """An operation of `count` operands that gives `dtype`, of vectors or of plain numbers."""
    if name in _INFIX and not (name == "div" and dtype not in FLOATS):
        return Spelling(f"({{0}} {_INFIX[name]} {{1}})")
    if name == "neg":
        return Spelling("(-{0})")
    if name in ("and", "or", "xor", "not") and dtype != "bool":
        return Spelling(f"({{0}} {dict(zip(('and', 'or', 'xor'), '&|^', strict=True)).get(name, '~')} {{1}})")
    if name == "xor":
        return Spelling("({0} != {1})")
    if not vector and name == "select":
        return Spelling("({0} ? {1} : {2})")
    if not vector and name in ("abs", "sqrt") and dtype in FLOATS:
        return Spelling("std::fabs({0})" if name == "abs" else "std::sqrt({0})")
    if not vector and name in ("and", "or", "not"):
        return Spelling("(!{0})" if name == "not" else f"({{0}} {'&' if name == 'and' else '|'} {{1}})")
    if name in _CALLS:
        function = _CALLS[name]
        return _call(function, count, _NEEDS.get(function, function))
    if name in _WHOLE and dtype in FLOATS and polynomials:
        return _call(_WHOLE[name], count, "whole")
    if name in _WHOLE and dtype not in FLOATS:
        return Spelling("{0}")
    if polynomials and dtype == "float32" and name in _IN_LINE:
        return _call(_IN_LINE[name], count, _IN_LINE[name])
    if name == "exp2" and polynomials and dtype == "float32":
        return Spelling(f"exponential({{0}} * {literal(math.log(2), dtype)})", ("exponential",), True)
    if name in ("log2", "log10") and polynomials and dtype == "float32":
        factor = literal(1 / math.log(2 if name == "log2" else 10), dtype)
        return Spelling(f"(logarithm({{0}}) * {factor})", ("logarithm",), True)
    return _library(name, dtype, count, vector)


def _call(function: str, count: int, need: str) -> Spelling:
    return Spelling(f"{function}({', '.join(f'{{{i}}}' for i in range(count))})", (need,), True)


def _library(name: str, dtype: str, count: int, vector: bool) -> Spelling:
    operands = ", ".join(f"{{{i}}}" for i in range(count))
    if name == "sigmoid" and not vector:
        one = literal(1, dtype)
        return Spelling(f"({one} / ({one} + std::exp(-{{0}})))")
    function = f"std::{_LIBRARY.get(name, name)}"
    if not vector:
        return Spelling(f"{function}({operands})")
    names = ("x", "y")[:count]
    parameters = ", ".join(f"auto {one}" for one in names)
    body = "1 / (1 + std::exp(-x))" if name == "sigmoid" else f"{function}({', '.join(names)})"
    return Spelling(f"each([]({parameters}) {{{{ return {body}; }}}}, {operands})", ("each",), True)


def literal(value: float | int | bool, dtype: str) -> str:
    """A constant as C++ writes it."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype in FLOATS:
        number = float(value)
        if math.isnan(number):
            return "NAN"
        if math.isinf(number):
            return "INFINITY" if number > 0 else "-INFINITY"
        return repr(number) + ("f" if dtype == "float32" else "")
    if int(value) == -(1 << 63):
        return "INT64_MIN"
    if int(value) == -(1 << 31):
        return "INT32_MIN"
    return f"int64_t({int(value)})" if dtype == "int64" else str(int(value))
