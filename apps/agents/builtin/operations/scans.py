"""Operations whose result at a place combines all elements up to it."""

from __future__ import annotations

from apps.agents.builtin.form import COMPUTED, Def, Expr, Scan, axes_of
from apps.agents.builtin.index import Index
from apps.agents.builtin.reading import Call, cast, lowers

MONOID = {"cumsum": "sum", "cumprod": "product", "cummax": "max", "cummin": "min"}


@lowers("cumsum", "cumprod", "cummax", "cummin")
def running(call: Call) -> Def | tuple[Def | None, ...]:
    """Running sums, products and extremes. Sums and products of float32 are carried in float64, as Torch does."""
    source, monoid = call.tensor(0), MONOID[call.node.op.split(".")[1]]
    out = call.node.outputs[0]
    dtype = COMPUTED[out.dtype]
    wide = "float64" if dtype == "float32" and monoid in ("sum", "product") else dtype
    axes = axes_of(out.shape)
    if not axes:
        body = cast(source.body, dtype)
    else:
        along = int(call.arg(1)) % len(axes)
        bound = axes_of(source.shape, folded=True)[along]
        indices = tuple(Index.of(bound if i == along else axis) for i, axis in enumerate(axes))
        body = _scanned(monoid, source, indices, along, dtype, wide)
    value = Def(axes, body, out.dtype)
    # Where an extreme stands is not computed.
    return value if len(call.node.outputs) == 1 else (value, None)


def _scanned(monoid: str, source: Def, indices: tuple[Index, ...], along: int, dtype: str, wide: str) -> Expr:
    part = cast(cast(source.at(indices), dtype), wide)
    axis = source.axes[along]
    if axis.extent == 1:
        return cast(part, dtype)
    bound = axes_of(source.shape, folded=True)[along]
    return cast(Scan(monoid, bound, Index.of(axes_of(source.shape)[along]), part), dtype)
