"""Nested Python values and tensors as plain data, and tensors laid over shared memory: how the roles exchange arrays.

A value becomes a tree of {"t": INDEX} (a tensor of the list beside it), {"v": SCALAR}, {"list"|"tuple": [...]},
{"dict": [[KEY, ...], ...]} and {"dtype": NAME}; a tensor's bytes never travel in a message.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import torch

from apps.kernels.plain import Plain

GUARD = 4096
PROT_NONE, PROT_READ, PROT_WRITE = 0, 1, 2
MAP_SHARED, MAP_PRIVATE, MAP_FIXED, MAP_ANONYMOUS, MAP_NORESERVE = 1, 2, 0x10, 0x20, 0x4000
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]

DTYPES = {
    str(d).removeprefix("torch."): d
    for d in (
        torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int8, torch.int16, torch.int32, torch.int64,
        torch.uint8, torch.bool,
    )
}  # fmt: skip


class NotPlain(Exception):
    """A value that can't be handed to another process: neither a tensor nor plain data."""


def dtype_name(dtype: torch.dtype) -> str:
    """float32 for torch.float32."""
    return str(dtype).removeprefix("torch.")


def encode(value: Any, tensors: list[torch.Tensor], *, by_key: bool = False) -> Plain:
    """The tree of a value; its tensors are appended to `tensors`, those of a dictionary in the order of its keys if `by_key`.

    Raises `NotPlain`.
    """
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return {"t": len(tensors) - 1}
    if value is None or isinstance(value, bool | int | str):
        return {"v": value}
    if isinstance(value, float):
        return {"v": value if math.isfinite(value) else {"float": str(value)}}
    if isinstance(value, torch.dtype):
        return {"dtype": dtype_name(value)}
    if isinstance(value, torch.device):
        return {"device": str(value)}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [encode(item, tensors, by_key=by_key) for item in value]}
    if isinstance(value, dict):
        items = sorted(value.items(), key=lambda item: str(item[0])) if by_key else value.items()
        return {"dict": [[str(key), encode(item, tensors, by_key=by_key)] for key, item in items]}
    raise NotPlain(f"a {type(value).__name__}")


def decode(tree: Plain, tensors: list[torch.Tensor]) -> Any:
    """The value of a tree over these tensors."""
    (kind, content), *_ = tree.items()
    if kind == "t":
        return tensors[content]
    if kind == "v":
        return float(content["float"]) if isinstance(content, dict) else content
    if kind == "dtype":
        return getattr(torch, content)
    if kind == "device":
        return torch.device(content)
    if kind == "dict":
        return {key: decode(item, tensors) for key, item in content}
    items = [decode(item, tensors) for item in content]
    return items if kind == "list" else tuple(items)


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors in what a model returns, in order. Raises `NotPlain`."""
    found: list[torch.Tensor] = []
    encode(value, found, by_key=True)
    return found


def describe(tensor: torch.Tensor) -> Plain:
    """Data type, shape, strides in elements and bytes spanned; raises `NotPlain` for what bytes can't say."""
    name = dtype_name(tensor.dtype)
    if name not in DTYPES or tensor.layout != torch.strided:
        hint = (
            "; complex numbers are not judged yet: give and return torch.view_as_real's pairs"
            if tensor.is_complex()
            else ""
        )
        raise NotPlain(f"a tensor of {name} ({tensor.layout}){hint}")
    if any(step < 0 for step in tensor.stride()):
        raise NotPlain("a tensor with negative strides")
    span = span_of(tuple(tensor.shape), tuple(tensor.stride()))
    return {
        "dtype": name,
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "bytes": span * tensor.element_size(),
    }


def span_of(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    """Elements from the first to the last of a strided tensor, both included."""
    if any(size == 0 for size in shape):
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def over(memory: Any, offset: int, spec: Plain) -> torch.Tensor:
    """A tensor of this description over a buffer's bytes from `offset` on; it shares them."""
    dtype = DTYPES[spec["dtype"]]
    shape, stride = tuple(spec["shape"]), tuple(spec["stride"])
    span = span_of(shape, stride)
    if span == 0:
        return torch.empty(shape, dtype=dtype)
    flat = torch.frombuffer(memory, dtype=dtype, count=span, offset=offset)
    return flat.as_strided(shape, stride)


def contiguous_spec(dtype: str, shape: list[int]) -> Plain:
    """The description of a contiguous tensor."""
    stride, step = [], 1
    for size in reversed(shape):
        stride.append(step)
        step *= max(1, size)
    return {"dtype": dtype, "shape": shape, "stride": stride[::-1]}


def guarded(fd: int, offset: int, size: int, *, writable: bool = False) -> Any:
    """Pages of a memory file mapped between two pages that can't be touched; `offset` and `size` are whole pages.

    Read-only and shared, unless `writable`: then a private copy, to find out who writes to its inputs.
    """
    reserved = map_memory(None, size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
    access, kind = (PROT_READ | PROT_WRITE, MAP_PRIVATE) if writable else (PROT_READ, MAP_SHARED)
    address = map_memory(reserved + GUARD, size, access, kind | MAP_FIXED, fd, offset)
    return (ctypes.c_char * size).from_address(address)


def map_memory(address: int | None, size: int, access: int, kind: int, fd: int, offset: int) -> int:
    """mmap(2); raises OSError."""
    found = _libc.mmap(address, size, access, kind, fd, offset)
    if found is None or found == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    return int(found)
