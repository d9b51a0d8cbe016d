"""The same values in other storage: strides that a kernel may meet in use and that `get_inputs` does not give."""

from __future__ import annotations

import torch

from apps.kernels.inside.layout_names import CUT_OUT, EXPANDED, STEPPED, TRANSPOSED


def laid_out(tensor: torch.Tensor, how: str) -> torch.Tensor:
    """The tensor stored as named; itself where it has too few dimensions for that. Gaps hold zeros.

    `EXPANDED` keeps the values of the first slice alone and repeats them with a stride of nothing.
    """
    if how == EXPANDED:
        return tensor[:1].expand(tensor.shape) if tensor.ndim > 1 and tensor.shape[0] > 1 else tensor
    if tensor.ndim == 0 or (how == TRANSPOSED and tensor.ndim < 2):
        return tensor
    if how == TRANSPOSED:
        return tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
    *outer, inner = tensor.shape
    if how == STEPPED:
        found = tensor.new_zeros((*outer, 2 * inner))[..., ::2]
    elif how == CUT_OUT:
        found = tensor.new_zeros((*outer, inner + 3))[..., 1 : 1 + inner]
    else:
        raise ValueError(how)
    return found.copy_(tensor)


def written_once(tensor: torch.Tensor) -> torch.Tensor:
    """A view of it that holds each place in memory once: what an expanded tensor can be written through."""
    for axis, (size, step) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if step == 0 and size > 1:
            tensor = tensor.narrow(axis, 0, 1)
    return tensor
