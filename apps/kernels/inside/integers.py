"""Other integers and booleans than those given, of the same range: what a problem may ask of an index still holds."""

from __future__ import annotations

import torch

LONE = 3
EDGE = 64  # first and last elements that are left as given where few others are changed


def edges_off(chosen: torch.Tensor) -> torch.Tensor:
    """Without a tensor's first and last elements, where somebody who looks at a few would look."""
    edge = min(EDGE, chosen.numel() // 8)
    chosen[:edge] = False
    chosen[chosen.numel() - edge :] = False
    return chosen


def others(tensor: torch.Tensor, generator: torch.Generator, *, lone: bool = False) -> torch.Tensor:
    """Integers and booleans that differ from those given in a quarter of the elements, first and last ones left as they are.

    They stay within the range of those given, and keep what an index may need to keep: what is in order along the last axis
    is in order afterwards (with its ends where they were), and where all values differ they still do. What would only be one
    constant is shortened: lengths become smaller ones, a mask of ones loses some. With `lone` three elements differ, where any
    may: nobody who looks at some thousands of others can tell.
    """
    flat = tensor.reshape(-1)
    count = flat.numel()
    if tensor.dtype == torch.bool:
        flipped = _taken(count, generator, lone=lone)
        return (flat ^ flipped).view(tensor.shape)
    low, high = int(flat.min()), int(flat.max())
    wide = tensor.long()
    in_order = tensor.ndim > 0 and tensor.shape[-1] > 2 and bool((wide.diff(dim=-1) >= 0).all())
    if lone and (in_order or torch.unique(flat).numel() == count):
        return tensor
    if 1 < count <= high - low + 1 and torch.unique(flat).numel() == count:
        return _other_distinct(wide, low, high, in_order, generator).to(tensor.dtype)
    if low == high:
        low = min(high, 1) if high > 1 else 0
    if low >= high:
        return tensor
    drawn = torch.randint(low, high + 1, (count,), generator=generator)
    if low < 0 and tensor.dtype != torch.int8:  # one that means something of its own, as an index to be left out does
        drawn = wide.reshape(-1)[torch.randint(0, count, (count,), generator=generator)]
    if in_order and int(flat.min()) < int(flat.max()):
        found = drawn.view(tensor.shape).sort(-1).values
        found[..., 0], found[..., -1] = wide[..., 0], wide[..., -1]
        return found.clamp(wide[..., :1], wide[..., -1:]).to(tensor.dtype)
    taken = _taken(count, generator, lone=lone)
    return torch.where(taken, drawn, wide.reshape(-1)).view(tensor.shape).to(tensor.dtype)


def _taken(count: int, generator: torch.Generator, *, lone: bool) -> torch.Tensor:
    """Which elements are changed."""
    if not lone:
        return edges_off(torch.rand(count, generator=generator) < 0.25)
    places = torch.randint(0, count, (LONE,), generator=generator)
    return edges_off(torch.zeros(count, dtype=torch.bool).index_fill_(0, places, True))


def _other_distinct(
    wide: torch.Tensor, low: int, high: int, in_order: bool, generator: torch.Generator
) -> torch.Tensor:
    """Others of the same range that all differ: in order where there is room for that, else some change places."""
    flat, count = wide.reshape(-1), wide.numel()
    if in_order and wide.ndim == 1 and count < high - low + 1 <= 64 * count + 1024:
        inner = torch.randperm(high - low - 1, generator=generator)[: count - 2] + low + 1
        return torch.cat([flat[:1], inner.sort().values, flat[-1:]])
    movable = edges_off(torch.rand(count, generator=generator) < 0.25).nonzero().squeeze(1)
    found = flat.clone()
    found[movable] = flat[movable[torch.randperm(movable.numel(), generator=generator)]]
    return found.view(wide.shape)
