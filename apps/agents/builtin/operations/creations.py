"""Operations that make a tensor from numbers."""

from __future__ import annotations

from apps.agents.builtin.form import COMPUTED, Const, Def, Expr, Op, Position, axes_of
from apps.agents.builtin.index import Index
from apps.agents.builtin.reading import Call, cast, element, lowers


def _filled(call: Call, value: object) -> Def:
    body = element(value, (), COMPUTED[call.out.dtype])
    return Def(axes_of(call.out.shape), body, call.out.dtype)


@lowers("scalar_tensor")
def scalar_tensor(call: Call) -> Def:
    """One number as a tensor of no dimension."""
    return _filled(call, call.arg(0))


@lowers("full", "full_like", "fill")
def full(call: Call) -> Def:
    """A tensor of one number."""
    return _filled(call, call.arg(1))


@lowers("empty", "empty_permuted", "empty_like", "zeros", "zeros_like", "new_zeros")
def empty(call: Call) -> Def:
    """A tensor whose content nobody may read, or of noughts: noughts."""
    return _filled(call, 0)


@lowers("ones", "ones_like", "new_ones")
def ones(call: Call) -> Def:
    """A tensor of ones."""
    return _filled(call, 1)


@lowers("arange")
def arange(call: Call) -> Def:
    """start, start + step, ..: the index as a number."""
    numbers = [arg for arg in call.args if isinstance(arg, int | float)]
    start, step = (0, 1) if len(numbers) == 1 else (numbers[0], numbers[2] if len(numbers) > 2 else 1)
    axes = axes_of(call.out.shape)
    computed = COMPUTED[call.out.dtype]
    body: Expr
    if isinstance(start, int) and isinstance(step, int):
        body = Position(Index.of(axes[0]) * step + start)
    else:
        index = cast(Position(Index.of(axes[0])), "float64")
        scaled = Op("mul", (index, Const(float(step), "float64")), "float64")
        body = Op("add", (scaled, Const(float(start), "float64")), "float64")
    return Def(axes, cast(body, computed), call.out.dtype)
