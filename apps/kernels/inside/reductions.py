"""How many terms go into one output element: what rounding error a sum of that length may have; and what is dispatched."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

PRODUCTS = ("mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "dot", "mv", "addmv", "addbmm", "ger", "addr", "vdot")
OWN = ("aten", "mkldnn")  # namespaces of torch's own operators
# What hands elements on, or picks some of them, and adds nothing up.
PICKING = (
    "index", "index_select", "gather", "embedding", "take", "masked_select", "nonzero", "max", "min", "amax", "amin", "aminmax",
    "argmax", "argmin", "topk", "sort", "kthvalue", "median", "mode", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "all", "any", "unique", "_unique2", "scatter", "index_put", "empty",
)  # fmt: skip


def is_product(name: str) -> bool:
    """Whether an operator's full name (`aten.mm.default`) is a product's, a convolution's or an attention's of torch's own."""
    space, _, rest = name.partition(".")
    short = rest.partition(".")[0]
    if space not in OWN:  # whoever registers operators may call one of them mm
        return False
    return short in PRODUCTS or "convolution" in short or "scaled_dot_product" in short or "mkldnn_linear" in short


class Counting(TorchDispatchMode):  # type: ignore[misc]
    """While active, counts operators by name and bytes of new tensors, and keeps how long the longest reduction is
    that went into each tensor, and into any.
    """

    def __init__(self) -> None:
        super().__init__()
        self.longest = 1
        self._lengths = WeakIdKeyDictionary()
        self.operators: dict[str, int] = {}
        self.allocated = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to skip it torch would import torch._dynamo at the first operator, which takes a second or two."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        name = str(func)
        if self.is_counted(args, kwargs, result):
            self.operators[name] = self.operators.get(name, 0) + 1
        length = max((self._lengths.get(t, 1) for t in tensors_in((args, kwargs or {}))), default=1)
        if not func.is_view:
            length = max(length, _length(name, args, result))
        for tensor in tensors_in(result):
            self._lengths[tensor] = length
        self.longest = max(self.longest, length)
        if not func.is_view:
            self.allocated += _new_bytes(args, kwargs, result)
        return result

    def is_counted(self, args: Any, kwargs: Any, result: Any) -> bool:
        """Whether this operator is one to be named: here all are."""
        return True

    def of(self, tensor: torch.Tensor) -> int:
        """Terms of the longest reduction that went into a tensor; the longest of all where it was not seen to be made."""
        return int(self._lengths.get(tensor, self.longest))


def _new_bytes(args: Any, kwargs: Any, result: Any) -> int:
    """Bytes of the storages that a result has and the operands have not."""
    old = {t.untyped_storage().data_ptr() for t in tensors_in((args, kwargs))}
    new = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors_in(result)}
    return sum(size for pointer, size in new.items() if pointer not in old)


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of an operator's arguments or results."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def _along(short: str, first: torch.Tensor, args: Any) -> int | None:
    """Terms of a running sum, a softmax or a normalisation, along what it goes; None for any other operator."""
    numbers = [a for a in args[1:] if isinstance(a, int) and not isinstance(a, bool)]
    if "softmax" in short or short.startswith(("cum", "logcum")):
        return int(first.shape[numbers[0]]) if numbers and first.ndim else first.numel()
    if "layer_norm" in short or "rms_norm" in short:
        shapes = [a for a in args if isinstance(a, list | tuple)]
        return int(math.prod(shapes[0])) if shapes else max(first.shape, default=1)
    if "batch_norm" in short and first.ndim > 1:
        if "no_training" in short or next((not a for a in args if isinstance(a, bool)), False):
            return 1  # what was averaged before is only applied
        return int(first.numel() // max(1, first.shape[1]))
    if "group_norm" in short and len(numbers) >= 4:
        _, channels, pixels, groups = numbers[:4]
        return int(channels * pixels // max(1, groups))
    return max(first.shape, default=1) if "norm" in short and "vector_norm" not in short else None


def _length(name: str, args: Any, result: Any) -> int:
    tensors = [a for a in args if isinstance(a, torch.Tensor)]
    if not tensors:
        return 1
    first, last = tensors[0], tensors[-1]
    short = name.split(".")[1] if name.count(".") else name
    out = result[0] if isinstance(result, list | tuple) and result else result
    length = 1
    if "convolution" in short and len(tensors) > 1:
        length = tensors[1].numel() // max(1, tensors[1].shape[0])
    elif "avg_pool" in short and "adaptive" not in short:
        length = next((math.prod(a) for a in args if isinstance(a, list | tuple)), 1)
    elif "scaled_dot_product" in short and len(tensors) > 2 and first.ndim > 1:
        length = max(first.shape[-1], tensors[1].shape[-2])
    elif short in PRODUCTS:
        length = last.shape[-2 if last.ndim > 1 else 0]
    elif (along := _along(short, first, args)) is not None:
        length = along
    elif isinstance(out, torch.Tensor) and out.numel() and short not in PICKING and not short.startswith("new_"):
        length = first.numel() // out.numel()
    return max(1, int(length))
