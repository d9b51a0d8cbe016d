"""Other distributions and magnitudes of the same inputs, and other weights: what generic really means."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Final

import torch

from apps.kernels.inside import draw_names as names
from apps.kernels.inside import integers
from apps.kernels.inside.integers import edges_off

LONE_ELEMENTS = 3


def reshape(tensor: torch.Tensor, how: str, generator: torch.Generator, index: int = 0) -> torch.Tensor:
    """The tensor with its distribution changed as named; `index` is its place among the inputs.

    Shapes, data types and strides stay; integers and booleans stay as drawn, but for "other integers", where only they are
    drawn otherwise, and for "lone". Raises `KeyError` for a name that is none.
    """
    if how == names.AS_GIVEN or tensor.numel() == 0:
        return tensor
    if how == names.INTEGERS:
        return tensor if tensor.is_floating_point() else integers.others(tensor, generator)
    if not tensor.is_floating_point():
        return integers.others(tensor, generator, lone=True) if how == names.LONE else tensor
    if how in (names.ONE_SIDED, names.OTHER_SIDE):
        return _one_sided(tensor, generator, 1 if how == names.ONE_SIDED else -1)
    if how in CANCELLING:
        return _cancelling(tensor, how, index, generator)
    return DRAWS[how](tensor, generator)


def _low_bits(tensor: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    """Values that one precision lower would all round towards zero by nearly half a unit.

    The bits below bfloat16's (and TF32's) mantissa are set to just under one half; rounding to fewer bits then errs
    the same way everywhere, so that a sum can't average the errors out.
    """
    if tensor.dtype != torch.float32 or not tensor.is_contiguous():
        return tensor
    bits = tensor.view(torch.int32)
    return ((bits & ~0xFFFF) | 0x6F00).view(torch.float32)


def _mottled(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """As given, but that in one of 64 elements here and there, and in blocks that make up as many, values lie at the ends of
    the range that all of them come from: whatever a problem asks of its inputs' range still holds.
    """
    ends = torch.stack([tensor.min(), tensor.max()]).contiguous()
    chosen = torch.rand(tensor.numel(), generator=generator) < 1 / 64
    block = max(1, tensor.numel() >> 10)
    for at in torch.randint(0, tensor.numel(), (16,), generator=generator).tolist():
        chosen[at : at + block] = True
    which = torch.randint(0, 2, (tensor.numel(),), generator=generator)
    values = ends[which].view(tensor.shape)
    return torch.where(edges_off(chosen).view(tensor.shape), values, tensor)


def _spiked(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """As given, but that one of 256 elements is up to some hundreds of times as large: they make up half of any long sum, so
    that a part of its terms is not like the whole.
    """
    chosen = torch.rand(tensor.numel(), generator=generator) < 1 / 256
    factor = torch.exp2(4 + 4 * torch.rand(tensor.numel(), generator=generator)).view(tensor.shape)
    return torch.where(edges_off(chosen).view(tensor.shape), (tensor.float() * factor).to(tensor.dtype), tensor)


def _spread(tensor: torch.Tensor) -> float:
    return float(tensor.float().std(correction=0).clamp_min(1e-3)) if tensor.numel() > 1 else 1.0


def _noise(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(tensor.shape, generator=generator)


def _normal(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return (_noise(tensor, generator) * 1.5).to(tensor.dtype)


def _offset(tensor: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    return (tensor.float() + 3 * _spread(tensor)).to(tensor.dtype)


def _heavy(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return (_noise(tensor, generator) * _noise(tensor, generator).mul_(0.8).exp_()).to(tensor.dtype)


def _sparse(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.where(torch.rand(tensor.shape, generator=generator) < 0.7, torch.zeros_like(tensor), tensor)


def _flat(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.full_like(tensor, float(torch.rand((), generator=generator)) + 0.25)


def _nearly_alike(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    level = float(torch.rand((), generator=generator)) + 0.5
    return (level * (1 + torch.rand(tensor.shape, generator=generator) * 2.0**-12)).to(tensor.dtype)


def _far(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    size = _noise(tensor, generator).abs_().mul_(40).add_(tensor.float().abs())
    return (torch.sign(tensor.float()) * size).to(tensor.dtype)


def _huge(tensor: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    return tensor * 2.0 ** (7 if tensor.dtype == torch.float16 else 66)


def _halves(tensor: torch.Tensor, _generator: torch.Generator) -> torch.Tensor:
    """A dozen or so values, with ties among them."""
    step = max(0.5, 2.0 ** math.floor(math.log2(_spread(tensor) / 8)))
    return (torch.round(tensor.float() / step) * step).to(tensor.dtype)


def _odd(tensor: torch.Tensor, generator: torch.Generator, value: float) -> torch.Tensor:
    """Of both signs in one of a thousand elements, and in the first."""
    odd = torch.rand(tensor.shape, generator=generator) < 0.001
    odd.view(-1)[0] = True
    signs = torch.where(torch.rand(tensor.shape, generator=generator) < 0.5, -value, value).to(tensor.dtype)
    return torch.where(odd, signs, tensor)


def _stands_out(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """One element of each row, at a place of its own, lies six deviations above the others."""
    if tensor.ndim == 0:
        return tensor
    place = torch.randint(0, tensor.shape[-1], (*tensor.shape[:-1], 1), generator=generator)
    return tensor.scatter_add(-1, place, torch.full(place.shape, 6 * _spread(tensor), dtype=tensor.dtype))


def _lone(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """As given, but for three elements somewhere, which lie anywhere within three deviations of zero: nobody who looks at
    some thousands of others can tell.
    """
    places = torch.randint(0, tensor.numel(), (LONE_ELEMENTS,), generator=generator)
    size = max(3 * _spread(tensor), float(tensor.float().abs().max()))
    values = (torch.rand(LONE_ELEMENTS, generator=generator) * 2 - 1) * size
    chosen = torch.zeros(tensor.numel(), dtype=torch.bool).index_fill_(0, places, True).view(tensor.shape)
    drawn = torch.zeros(tensor.numel()).index_put_((places,), values).view(tensor.shape)
    return torch.where(chosen, drawn.to(tensor.dtype), tensor)


def _one_sided(tensor: torch.Tensor, generator: torch.Generator, sign: int) -> torch.Tensor:
    """Large and all of one sign, as far from zero as is drawn: what a gate forgets otherwise then counts for as long as all."""
    level = float(torch.rand((), generator=generator)) * 12 + 8
    return (sign * level + tensor.float()).to(tensor.dtype)


def _cancelling(tensor: torch.Tensor, how: str, index: int, generator: torch.Generator) -> torch.Tensor:
    """Neighbours of which a sum's, or a product's, leading parts cancel: what is left lies in their low bits.

    Along the last axis of the first input each second element is the one before it, negated and changed by at most one
    part in two thousand. Other inputs repeat an element instead, along their last axis (a product with the transposed) or
    the one before (a product), so that the terms of a product meet their opposites; in a sum each input cancels alone.
    """
    axis = -2 if how == names.CANCELLING_ROWS and index else -1
    if tensor.ndim < -axis or tensor.shape[axis] < 2:
        return tensor
    found = tensor.clone()
    pairs = tensor.shape[axis] // 2
    first = found.narrow(axis, 0, 2 * pairs).unfold(axis, 2, 2)  # a view: [..., pairs, ..., 2]
    if index and how != names.CANCELLING:
        first[..., 1] = first[..., 0]
    else:
        change = 1 + (torch.rand(first.shape[:-1], generator=generator) - 0.5) * 2.0**-10
        first[..., 1] = -(first[..., 0].float() * change).to(tensor.dtype)
    return found


CANCELLING: Final = (names.CANCELLING, names.CANCELLING_PAIRS, names.CANCELLING_ROWS)
DRAWS: Final[Mapping[str, Callable[[torch.Tensor, torch.Generator], torch.Tensor]]] = {
    names.SMALL: lambda tensor, _: tensor * 2.0**-9,
    names.LARGE: lambda tensor, _: tensor * 6.0,
    names.NORMAL: _normal,
    names.OFFSET: _offset,
    names.HEAVY: _heavy,
    names.SPARSE: _sparse,
    names.FLAT: _flat,
    names.LOW_BITS: _low_bits,
    names.NEARLY_ALIKE: _nearly_alike,
    names.STANDS_OUT: _stands_out,
    names.FAR: _far,
    names.HUGE: _huge,
    names.HALVES: _halves,
    names.LONE: _lone,
    names.MOTTLED: _mottled,
    names.SPIKED: _spiked,
    names.INFINITE: lambda tensor, generator: _odd(tensor, generator, math.inf),
    names.NAN: lambda tensor, generator: _odd(tensor, generator, math.nan),
    names.SUBNORMAL: lambda tensor, _: tensor * (torch.finfo(tensor.dtype).tiny / 4),
}


def alter_state(
    model: torch.nn.Module, generator: torch.Generator, leave: Collection[str] = (), *, flips: bool = False
) -> None:
    """Other weights: every floating-point parameter and running statistic moved away from what its constructor gave.

    Values that are all positive stay positive (variances, scales); the rest get noise of a tenth of their size. With `flips`
    one in ten parameters changes its sign, which a scale may as well. Other buffers are constants of the problem (a mask,
    positions), and stay; so does what is named in `leave`.
    """
    parameters = {name for name, _ in model.named_parameters(remove_duplicate=False)}
    learnt = set(parameters)
    for place, module in model.named_modules():
        if isinstance(module, torch.nn.modules.batchnorm._NormBase):
            learnt |= {f"{place}.{name}".lstrip(".") for name in ("running_mean", "running_var")}
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if name not in learnt or name in leave or not tensor.is_floating_point() or tensor.numel() == 0:
                continue
            factor = 1 + 0.2 * (torch.rand(tensor.shape, generator=generator) - 0.5)
            positive = bool((tensor > 0).all())
            size = tensor.float().abs().mean().clamp_min(0.05)
            noise = torch.zeros(()) if positive else 0.1 * size * torch.randn(tensor.shape, generator=generator)
            tensor.copy_((tensor.float() * factor + noise).to(tensor.dtype))
            if flips and name in parameters:
                tensor.mul_(1 - 2 * (torch.rand(tensor.shape, generator=generator) < 0.1).to(tensor.dtype))
