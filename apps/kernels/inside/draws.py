"""Other distributions and magnitudes of the same inputs, and other weights: what generic really means."""

from __future__ import annotations

import torch

# How inputs are reshaped, by name. All keep shapes, data types and strides; tensors of integers and booleans stay as drawn.
AS_GIVEN, SMALL, LARGE, NORMAL, OFFSET, HEAVY, SPARSE, FLAT, LOW_BITS = (
    "as given",
    "small",
    "large",
    "normal",
    "offset",
    "heavy-tailed",
    "sparse",
    "all alike",
    "low bits",
)
INFINITE, NAN, SUBNORMAL = "infinite", "not a number", "subnormal"  # beyond what is promised  # fmt: skip
# What finds savings that the usual ones let pass: drawn where a problem needs it.
NEARLY_ALIKE, STANDS_OUT = "nearly alike", "one stands out"
CANCELLING, CANCELLING_PAIRS, CANCELLING_ROWS = "cancelling", "cancelling pairs", "cancelling rows"


def reshape(tensor: torch.Tensor, how: str, generator: torch.Generator, index: int = 0) -> torch.Tensor:
    """The tensor with its distribution changed as named; `index` is its place among the inputs."""
    if not tensor.is_floating_point() or how == AS_GIVEN or tensor.numel() == 0:
        return tensor
    spread = tensor.float().std(correction=0).clamp_min(1e-3) if tensor.numel() > 1 else torch.tensor(1.0)

    def noise() -> torch.Tensor:
        return torch.randn(tensor.shape, generator=generator)

    if how == SMALL:
        return tensor * 2.0**-9
    if how == LARGE:
        return tensor * 6.0
    if how == NORMAL:
        return (noise() * 1.5).to(tensor.dtype)
    if how == OFFSET:
        return (tensor.float() + 3 * spread).to(tensor.dtype)
    if how == HEAVY:
        return (noise() * noise().mul_(0.8).exp_()).to(tensor.dtype)
    if how == SPARSE:
        return torch.where(torch.rand(tensor.shape, generator=generator) < 0.7, torch.zeros_like(tensor), tensor)
    if how == FLAT:
        return torch.full_like(tensor, float(torch.rand((), generator=generator)) + 0.25)
    if how == LOW_BITS:
        return low_bits(tensor)
    if how == NEARLY_ALIKE:
        level = float(torch.rand((), generator=generator)) + 0.5
        return (level * (1 + torch.rand(tensor.shape, generator=generator) * 2.0**-12)).to(tensor.dtype)
    if how == STANDS_OUT:
        return _stands_out(tensor, float(spread), generator)
    if how in (CANCELLING, CANCELLING_PAIRS, CANCELLING_ROWS):
        return _cancelling(tensor, how, index, generator)
    if how in (INFINITE, NAN):
        odd = torch.rand(tensor.shape, generator=generator) < 0.001
        odd.view(-1)[0] = True
        value = float("nan") if how == NAN else float("inf")
        signs = torch.where(torch.rand(tensor.shape, generator=generator) < 0.5, -value, value).to(tensor.dtype)
        return torch.where(odd, signs, tensor)
    if how == SUBNORMAL:
        return tensor * (torch.finfo(tensor.dtype).tiny / 4)
    raise ValueError(how)


def low_bits(tensor: torch.Tensor) -> torch.Tensor:
    """Values that one precision lower would all round towards zero by nearly half a unit.

    The bits below bfloat16's (and TF32's) mantissa are set to just under one half; rounding to fewer bits then errs
    the same way everywhere, so that a sum can't average the errors out.
    """
    if tensor.dtype != torch.float32 or not tensor.is_contiguous():
        return tensor
    bits = tensor.view(torch.int32)
    return ((bits & ~0xFFFF) | 0x6F00).view(torch.float32)


def _stands_out(tensor: torch.Tensor, spread: float, generator: torch.Generator) -> torch.Tensor:
    """One element of each row, at a place of its own, lies six deviations above the others."""
    if tensor.ndim == 0:
        return tensor
    place = torch.randint(0, tensor.shape[-1], (*tensor.shape[:-1], 1), generator=generator)
    return tensor.scatter_add(-1, place, torch.full(place.shape, 6 * spread, dtype=tensor.dtype))


def _cancelling(tensor: torch.Tensor, how: str, index: int, generator: torch.Generator) -> torch.Tensor:
    """Neighbours of which a sum's, or a product's, leading parts cancel: what is left lies in their low bits.

    Along the last axis of the first input each second element is the one before it, negated and changed by at most one
    part in two thousand. Other inputs repeat an element instead, along their last axis (a product with the transposed) or
    the one before (a product), so that the terms of a product meet their opposites; in a sum each input cancels alone.
    """
    axis = -2 if how == CANCELLING_ROWS and index else -1
    if tensor.ndim < -axis or tensor.shape[axis] < 2:
        return tensor
    found = tensor.clone()
    pairs = tensor.shape[axis] // 2
    first = found.narrow(axis, 0, 2 * pairs).unfold(axis, 2, 2)  # a view: [..., pairs, ..., 2]
    if index and how != CANCELLING:
        first[..., 1] = first[..., 0]
    else:
        change = 1 + (torch.rand(first.shape[:-1], generator=generator) - 0.5) * 2.0**-10
        first[..., 1] = -(first[..., 0].float() * change).to(tensor.dtype)
    return found


def alter_state(model: torch.nn.Module, generator: torch.Generator) -> None:
    """Other weights: every floating-point parameter and buffer moved away from what its constructor gave.

    Values that are all positive stay positive (variances, scales); the rest get noise of a tenth of their size.
    """
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if not tensor.is_floating_point() or tensor.numel() == 0:
                continue
            factor = 1 + 0.2 * (torch.rand(tensor.shape, generator=generator) - 0.5)
            positive = bool((tensor > 0).all())
            size = tensor.float().abs().mean().clamp_min(0.05)
            noise = torch.zeros(()) if positive else 0.1 * size * torch.randn(tensor.shape, generator=generator)
            tensor.copy_((tensor.float() * factor + noise).to(tensor.dtype))
