"""The problem computed one precision lower: what a candidate that saves bits would give, for the probes to catch.

The result keeps its data type; what goes into each operation (or into products alone, as TF32 does) is rounded to fewer
significant bits. That is the mildest way to save precision, so that whoever catches it catches the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from apps.kernels.inside.reductions import is_product


@dataclass(frozen=True)
class Level:
    """A lower precision: its name, significant bits (the leading one counted), and whether products alone have it."""

    name: str
    bits: int
    products_only: bool


LEVELS = {
    torch.float64: (Level("float32", 24, False), Level("float32 products", 24, True)),
    torch.float32: (
        Level("TF32 products", 11, True),
        Level("bfloat16 products", 8, True),
        Level("float16's or TF32's mantissa", 11, False),
        Level("bfloat16's mantissa", 8, False),
    ),
    torch.float16: (Level("bfloat16's mantissa", 8, False), Level("float8's mantissa", 4, False)),
    torch.bfloat16: (Level("float8's mantissa", 4, False),),
}


class Lowered(TorchDispatchMode):  # type: ignore[misc]
    """While active, operands are rounded to a level's bits; `rounded` counts the operations it reached."""

    def __init__(self, level: Level) -> None:
        super().__init__()
        self.level = level
        self.rounded = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to skip it torch would import torch._dynamo at the first operator, which takes a second or two."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        wanted = is_product(str(func)) if self.level.products_only else func.namespace == "aten" and not func.is_view
        if not wanted:
            return func(*args, **kwargs)
        self.rounded += 1
        written = [bool(a.alias_info and a.alias_info.is_write) for a in func._schema.arguments]
        lower = [a if w else self._lower(a) for a, w in zip(args, written, strict=False)]
        return func(*lower, **kwargs)

    def _lower(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return rounded(value, self.level.bits) if value.is_floating_point() else value
        if isinstance(value, list | tuple):
            return type(value)(self._lower(item) for item in value)
        return value


def rounded(tensor: torch.Tensor, bits: int) -> torch.Tensor:
    """The tensor's values rounded to nearest even with so many significant bits, in its own data type."""
    if tensor.dtype != torch.float32:
        mantissa, exponent = torch.frexp(tensor.double())
        near = torch.ldexp(torch.round(torch.ldexp(mantissa, torch.tensor(bits))), exponent - bits)
        return torch.where(torch.isfinite(tensor), near.to(tensor.dtype), tensor)
    drop = 24 - bits
    words = tensor.contiguous().view(torch.int32)
    near = (words >> drop).bitwise_and_(1)  # in place from here on: a temporary costs more than what is done to it
    near.add_(words).add_((1 << (drop - 1)) - 1).bitwise_and_(~((1 << drop) - 1))
    return near.view(torch.float32).view_as(tensor)
