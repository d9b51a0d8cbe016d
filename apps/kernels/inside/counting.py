"""What a program does as it is written: operators, FLOPs and the memory alive at once, counted as they are dispatched.

Works on fake tensors, so that a program of any size can be counted without running it. Convention for FLOPs: products
and convolutions by `torch.utils.flop_counter` (two for a multiply-add); elsewhere one for each function of one or two
numbers (an exponential counts as one, a comparison too), composite operators by the table below, moving data as none.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

# FLOPs for each element of the result, where an element-wise operator is written as several.
ELEMENTWISE = {
    "gelu": 5, "silu": 2, "hardswish": 4, "hardsigmoid": 4, "hardtanh": 2, "clamp": 2, "elu": 4, "selu": 4, "celu": 4,
    "softplus": 3, "mish": 4, "leaky_relu": 2, "log_sigmoid_forward": 4, "softshrink": 3, "addcmul": 2, "addcdiv": 2,
    "lerp": 3, "mse_loss": 3, "huber_loss": 5, "smooth_l1_loss": 5, "binary_cross_entropy": 6, "xlogy": 2, "logit": 3,
}  # fmt: skip
# FLOPs for each element of the first operand.
BY_INPUT = {
    "sum": 1, "mean": 1, "prod": 1, "amax": 1, "amin": 1, "max": 1, "min": 1, "aminmax": 2, "argmax": 1, "argmin": 1,
    "any": 1, "all": 1, "cumsum": 1, "cumprod": 1, "cummax": 1, "cummin": 1, "logcumsumexp": 4, "var": 4, "std": 4,
    "var_mean": 4, "std_mean": 4, "logsumexp": 4, "_softmax": 5, "_log_softmax": 5, "native_layer_norm": 8,
    "native_group_norm": 8, "native_batch_norm": 8, "_native_batch_norm_legit": 8, "_fused_rms_norm": 5,
    "_native_batch_norm_legit_no_training": 4, "cudnn_batch_norm": 8, "linalg_vector_norm": 2, "norm": 2, "nansum": 2,
    "mse_loss": 3, "huber_loss": 5, "smooth_l1_loss": 5, "binary_cross_entropy": 6, "nll_loss_forward": 0,
    "_adaptive_avg_pool2d": 1, "_adaptive_avg_pool3d": 1, "adaptive_max_pool2d": 1, "adaptive_max_pool3d": 1,
}  # fmt: skip
# Pooling: FLOPs for each element of the result are the elements of a window, the second argument.
WINDOWED = {
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "max_pool2d_with_indices",
    "max_pool3d_with_indices",
    "max_pool2d",
}
MOVING = {
    "clone", "copy_", "_to_copy", "cat", "stack", "constant_pad_nd", "gather", "index", "index_select", "embedding",
    "empty", "empty_like", "empty_strided", "new_empty", "zeros", "zeros_like", "new_zeros", "ones", "ones_like", "full",
    "full_like", "new_full", "scalar_tensor", "arange", "fill", "fill_", "zero_", "lift_fresh", "lift_fresh_copy", "detach",
    "where", "masked_fill", "flip", "roll", "tril", "triu", "repeat", "scatter", "slice_scatter", "_local_scalar_dense",
    "reflection_pad2d", "replication_pad2d", "upsample_nearest2d", "pixel_shuffle", "sort", "topk", "one_hot", "eye",
}  # fmt: skip


class Counting(TorchDispatchMode):  # type: ignore[misc]
    """While active: `operators` by full name, `flops`, and `peak_bytes` of results alive at once."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: dict[str, int] = {}
        self.flops = 0
        self.peak_bytes = 0
        self._alive: dict[int, tuple[StorageWeakRef, int]] = {}
        self._bytes = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to skip it torch would import torch._dynamo at the first operator, which takes a second or two."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not func.is_view and func.namespace == "aten":
            name = str(func)
            self.operators[name] = self.operators.get(name, 0) + 1
            self.flops += flops_of(func, args, kwargs, result)
        for tensor in tensors_in(result):
            self._note(tensor)
        return result

    def _note(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        reference = StorageWeakRef(storage)
        if reference.cdata in self._alive:
            return
        self._alive[reference.cdata] = (reference, storage.nbytes())
        self._bytes += storage.nbytes()
        if self._bytes > self.peak_bytes:
            self._forget_dead()
            self.peak_bytes = max(self.peak_bytes, self._bytes)

    def _forget_dead(self) -> None:
        for key, (reference, size) in list(self._alive.items()):
            if reference.expired():
                del self._alive[key]
                self._bytes -= size


def flops_of(func: Any, args: Any, kwargs: Any, result: Any) -> int:
    """FLOPs of one dispatched operator by the module's convention."""
    known = flop_registry.get(func._overloadpacket)
    if known is not None:
        return int(known(*args, **kwargs, out_val=result))
    name = func._opname.removesuffix("_") if func._opname not in MOVING else func._opname
    if name in MOVING:
        return 0
    first = next(tensors_in(args), None)
    out = next(tensors_in(result), None)
    if out is None:
        return 0
    if name in ELEMENTWISE and first is not None and out.numel() == first.numel():
        return _elementwise_cost(name, kwargs) * int(out.numel())
    if name in BY_INPUT and first is not None:
        return BY_INPUT[name] * int(first.numel())
    if name in WINDOWED and len(args) > 1:
        window = args[1] if isinstance(args[1], list | tuple) else [args[1]]
        dimensions = int(name.split("pool")[1][0])
        return int(math.prod(window) ** (dimensions if len(window) == 1 else 1)) * int(out.numel())
    return int(out.numel())


def _elementwise_cost(name: str, kwargs: Any) -> int:
    if name == "gelu" and kwargs.get("approximate") == "tanh":
        return 9
    return ELEMENTWISE[name]


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item)
