"""The value of a literal expression in a syntax tree: numbers, texts, truth values, arithmetic on numbers."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

Number = int | float
LARGEST_EXPONENT, LARGEST_INTEGER = 256, 1 << 64
_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def literal_value(node: ast.expr) -> int | float | bool | str | None:
    """What `node` says if it is a literal or arithmetic on literal numbers (`1024 * 2`, `2**20`, `-1`), else None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float | bool | str):
        return node.value
    return _number(node)


def _number(node: ast.expr) -> Number | None:
    if isinstance(node, ast.Constant):
        value = node.value
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        inner = _number(node.operand)
        return None if inner is None else -inner if isinstance(node.op, ast.USub) else inner
    if not isinstance(node, ast.BinOp):
        return None
    left, right = _number(node.left), _number(node.right)
    if left is None or right is None:
        return None
    return _combined(node.op, left, right)


def _combined(kind: ast.operator, left: Number, right: Number) -> Number | None:
    """One operation, bounded: a source must not make its reader compute for long."""
    try:
        if isinstance(kind, ast.Pow):
            if abs(right) > LARGEST_EXPONENT or abs(left) > LARGEST_INTEGER:
                return None
            result = left**right
        elif isinstance(kind, ast.LShift):
            result = left << right if isinstance(left, int) and isinstance(right, int) and right < 64 else None
        else:
            function = _BINARY.get(type(kind))
            result = function(left, right) if function else None
    except (ArithmeticError, ValueError, TypeError):
        return None
    if isinstance(result, complex) or (isinstance(result, int) and abs(result) > LARGEST_INTEGER):
        return None
    return result
