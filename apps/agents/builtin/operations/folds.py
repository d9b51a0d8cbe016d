"""Operations that combine many elements into one."""

from __future__ import annotations

from collections.abc import Callable

from apps.agents.builtin.form import COMPUTED, FLOATS, Const, Def, Expr, Fold, Op, Position, axes_of
from apps.agents.builtin.index import Axis, Index, joined
from apps.agents.builtin.reading import Call, Operand, cast, dimensions, element, lowers, number, op
from apps.agents.words import CannotWrite

Finish = Callable[[Expr], Expr]


def folded(
    source: Def, dims: tuple[int, ...], keep: bool, make: Callable[[Expr, tuple[Axis, ...]], Expr], dtype: str
) -> Def:
    """`make(element, bound axes)` for each point of the other dimensions."""
    inner = axes_of(source.shape, folded=True)
    bound = tuple(inner[i] for i in dims)
    shape = tuple(1 if i in dims else size for i, size in enumerate(source.shape) if keep or i not in dims)
    axes = axes_of(shape)
    outer = iter(axes)
    indices = []
    for i, axis in enumerate(inner):
        own = next(outer) if keep or i not in dims else None
        indices.append(Index.of(axis) if i in dims else Index.of(own) if own is not None else Index())
    return Def(axes, make(source.at(indices), bound), dtype)


def _simple(monoid: str, dtype: str, finish: Finish = lambda x: x) -> Callable[[Expr, tuple[Axis, ...]], Expr]:
    def make(x: Expr, bound: tuple[Axis, ...]) -> Expr:
        total = cast(x, dtype)
        return finish(Fold(monoid, bound, (total,)) if bound else total)

    return make


def _count(source: Def, dims: tuple[int, ...]) -> int:
    count = 1
    for i in dims:
        count *= source.shape[i]
    return count


def _plan(call: Call, dim: int = 1, keep: int = 2) -> tuple[Def, tuple[int, ...], bool]:
    source = call.tensor(0)
    given = call.arg(dim)
    if isinstance(given, bool):
        given = None
    kept = call.arg(keep, call.kwargs.get("keepdim", False))
    return source, dimensions(given, len(source.shape)), bool(kept) if isinstance(kept, bool) else False


def _total(source: Def, dims: tuple[int, ...], keep: bool, monoid: str, dtype: str, finish: Finish) -> Def:
    if _count(source, dims) == 0:
        raise CannotWrite("A fold over nothing is left to Torch.")
    return folded(source, dims, keep, _simple(monoid, COMPUTED[dtype], finish), dtype)


@lowers("sum")
def sum_(call: Call) -> Def:
    """Sums; of truth values, in whole numbers."""
    source, dims, keep = _plan(call)
    return _total(source, dims, keep, "sum", call.out.dtype, lambda x: x)


@lowers("mean")
def mean(call: Call) -> Def:
    """Sum over count."""
    source, dims, keep = _plan(call)
    count = _count(source, dims)
    return _total(source, dims, keep, "sum", call.out.dtype, lambda x: op("div", x, number(count, x)))


@lowers("prod")
def prod(call: Call) -> Def:
    """Products."""
    source, dims, keep = _plan(call)
    return _total(source, dims, keep, "product", call.out.dtype, lambda x: x)


@lowers("amax", "amin")
def amax(call: Call) -> Def:
    """Largest or smallest; NaN if any is."""
    source, dims, keep = _plan(call)
    name = "max" if call.node.op.startswith("aten.amax") else "min"
    return _total(source, dims, keep, name, call.out.dtype, lambda x: x)


@lowers("any", "all")
def any_(call: Call) -> Def:
    """Whether any or all are not nought."""
    source, dims, keep = _plan(call)
    name = "any" if call.node.op.startswith("aten.any") else "all"
    if not isinstance(call.arg(1), int | tuple) or isinstance(call.arg(1), bool):
        dims, keep = tuple(range(len(source.shape))), False

    def make(x: Expr, bound: tuple[Axis, ...]) -> Expr:
        truth = x if x.dtype == "bool" else Op("ne", (x, number(0, x)), "bool")
        return Fold(name, bound, (truth,)) if bound else truth

    return folded(source, dims, keep, make, call.out.dtype)


@lowers("max", "min")
def max_(call: Call) -> Def | tuple[Def | None, ...]:
    """The largest of all, the larger of two tensors, or the largest along a dimension with its index."""
    name = "max" if call.node.op.startswith("aten.max") else "min"
    other = call.arg(1)
    if isinstance(other, Def):
        axes, dtype = axes_of(call.out.shape), COMPUTED[call.out.dtype]
        a, b = element(call.arg(0), axes, dtype), element(other, axes, dtype)
        return Def(axes, op(f"{name}imum", a, b), call.out.dtype)
    if other is None:
        source = call.tensor(0)
        return _total(source, tuple(range(len(source.shape))), False, name, call.out.dtype, lambda x: x)
    source, dims, keep = _plan(call)
    value = _total(source, dims, keep, name, call.node.outputs[0].dtype, lambda x: x)
    return value, _arg(source, dims, keep, f"arg{name}")


@lowers("argmax", "argmin")
def argmax(call: Call) -> Def:
    """The first index of the largest or smallest; a NaN counts as both."""
    source = call.tensor(0)
    name = "argmax" if call.node.op.startswith("aten.argmax") else "argmin"
    everything = call.arg(1) is None
    dims = dimensions(call.arg(1), len(source.shape))
    return _arg(source, dims, bool(call.arg(2, False)), name, flat=everything)


def _arg(source: Def, dims: tuple[int, ...], keep: bool, name: str, flat: bool = False) -> Def:
    """Indices count along the folded dimensions in row-major order, in 32 bits while folding where that is enough."""
    sizes = tuple(source.shape[i] for i in dims)
    small = _count(source, dims) < 1 << 31

    def make(x: Expr, bound: tuple[Axis, ...]) -> Expr:
        if not bound or (not flat and not sizes):
            return Const(0, "int64")
        where: Expr = Position(joined(tuple(Index.of(axis) for axis in bound), sizes))
        value = cast(x, "int32") if x.dtype == "bool" else x
        return cast(Fold(name, bound, (value, cast(where, "int32") if small else where), 1), "int64")

    return folded(source, dims, keep, make, "int64")


@lowers("var", "std", "var_mean", "std_mean")
def var(call: Call) -> Def | tuple[Def, ...]:
    """Sum of squared distances from the mean over count less correction; its root; with the mean."""
    source = call.tensor(0)
    given: Operand = call.arg(1)
    dims = dimensions(None if isinstance(given, bool) else given, len(source.shape))
    correction = call.kwargs.get("correction", call.arg(2, 1))
    correction = 1 if correction is None else correction
    keep = bool(call.kwargs.get("keepdim", False))
    dtype = call.out.dtype
    root = "std" in call.node.op.split(".")[1]
    spread = _spread(source, dims, keep, float(correction), dtype, root)
    if "mean" not in call.node.op.split(".")[1]:
        return spread
    count = _count(source, dims)
    return spread, _total(source, dims, keep, "sum", dtype, lambda x: op("div", x, number(count, x)))


def _spread(source: Def, dims: tuple[int, ...], keep: bool, correction: float, dtype: str, root: bool) -> Def:
    computed, count = COMPUTED[dtype], _count(source, dims)
    if computed not in FLOATS:
        raise CannotWrite(f"A variance in {dtype} is not written.")

    def make(x: Expr, bound: tuple[Axis, ...]) -> Expr:
        mean = op("div", Fold("sum", bound, (x,)), number(count, x))
        away = op("sub", x, mean)
        total = Fold("sum", bound, (op("mul", away, away),))
        spread = op("div", total, number(max(0.0, count - correction), x))
        return op("sqrt", spread) if root else spread

    if not dims:
        return folded(source, dims, keep, lambda x, bound: number(float("nan") if correction else 0.0, x), dtype)
    return folded(source, dims, keep, make, dtype)


@lowers("linalg_vector_norm")
def vector_norm(call: Call) -> Def:
    """Roots of summed powers; the largest or smallest size for infinite orders."""
    source, order = call.tensor(0), float(call.arg(1, 2))
    dims = dimensions(call.arg(2), len(source.shape))
    keep, dtype = bool(call.arg(3, False)), call.out.dtype

    def make(x: Expr, bound: tuple[Axis, ...]) -> Expr:
        size = op("abs", cast(x, COMPUTED[dtype]))
        if order in (float("inf"), float("-inf")):
            return Fold("max" if order > 0 else "min", bound, (size,))
        if order == 0:
            return Fold("sum", bound, (cast(Op("ne", (size, number(0, size)), "bool"), size.dtype),))
        if order == 1:
            return Fold("sum", bound, (size,))
        if order == 2:
            return op("sqrt", Fold("sum", bound, (op("mul", size, size),)))
        total = Fold("sum", bound, (op("pow", size, number(order, size)),))
        return op("pow", total, number(1 / order, size))

    return folded(source, dims, keep, make, dtype)


@lowers("gather")
def gather(call: Call) -> Def:
    """Elements by index along one dimension, as a fold over it that keeps the one whose position is the index."""
    source, index = call.tensor(0), call.tensor(2)
    along = int(call.arg(1)) % max(1, len(source.shape))
    axes = axes_of(call.out.shape)
    wanted = cast(index.at(tuple(Index.of(axis) for axis in axes)), "int64")
    bound = axes_of(source.shape, folded=True)[along]
    indices = tuple(Index.of(bound) if i == along else Index.of(axis) for i, axis in enumerate(axes))
    value = source.at(indices)
    if source.shape[along] > MOST_GATHERED:
        raise CannotWrite(
            f"{call.node.op} picks among {source.shape[along]} elements; up to {MOST_GATHERED} is written."
        )
    here = Op("eq", (Position(Index.of(bound)), wanted), "bool")
    picked = op("select", here, value, number(0, value))
    return Def(axes, Fold("sum", (bound,), (picked,)), call.out.dtype)


# A fold reads the whole dimension where a gather reads one element: only where that is cheap beside the rest.
MOST_GATHERED = 65536
