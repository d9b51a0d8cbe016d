"""On how many of its input elements an output is seen to depend: the least that any kernel must read.

Two views of it, each of which can only see too few: derivatives that are not zero, and elements changed one by one. The
larger counts; where elements are changed by chance, the lower end of what their number says.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from apps.kernels.inside import values
from apps.kernels.strength import least_share

if TYPE_CHECKING:
    from apps.kernels.inside.oracle import Oracle

MOST_TRIED = 64  # elements of one input
ENOUGH = 0.999  # share that needs no second look


def shares(oracle: Oracle, given: list[torch.Tensor], other: list[torch.Tensor], seconds: float) -> list[float]:
    """For each input tensor the share of its elements on which the output is seen to depend, at least."""
    found = _by_derivative(oracle, given)
    wanting = [i for i, share in enumerate(found) if share < ENOUGH and given[i].numel()]
    for count, index in enumerate(wanting):
        allowed = seconds / len(wanting) * (count + 1)
        found[index] = max(found[index], _by_changing(oracle, given, other, index, allowed))
    return found


def _by_derivative(oracle: Oracle, given: list[torch.Tensor]) -> list[float]:
    """Shares of derivatives of a random combination of all outputs that are not zero; zeros where there are none."""
    found = [0.0] * len(given)
    leaves = [t.clone().requires_grad_() if t.is_floating_point() else t for t in given]
    wanted = [i for i, t in enumerate(leaves) if t.requires_grad]
    torch.manual_seed(oracle.seed)
    try:
        with torch.enable_grad():
            result = oracle.model(*values.decode(oracle.tree, leaves))
            outputs = [t for t in values.tensors_of(result) if t.requires_grad]
            if not outputs or not wanted:
                return found
            weights = [torch.randn_like(t) for t in outputs]
            found_for = torch.autograd.grad(outputs, [leaves[i] for i in wanted], weights, allow_unused=True)
    except Exception:
        return found
    finally:
        oracle.restore()
    for index, gradient in zip(wanted, found_for, strict=True):
        if gradient is not None and gradient.numel():
            found[index] = float((gradient.nan_to_num(nan=0.0) != 0).double().mean())
    return found


def _by_changing(
    oracle: Oracle, given: list[torch.Tensor], other: list[torch.Tensor], index: int, seconds: float
) -> float:
    """The least share that random elements, changed one at a time, allow."""
    started = time.monotonic()
    base = _outputs(oracle, given)
    tensor = given[index].clone(memory_format=torch.contiguous_format)
    flat, donor = tensor.view(-1), other[index].reshape(-1)
    places = torch.randint(0, flat.numel(), (MOST_TRIED,), generator=torch.Generator().manual_seed(oracle.seed))
    seen = tried = 0
    for at in places.tolist():
        if tried and time.monotonic() - started > seconds:
            break
        tried += 1
        old = flat[at].clone()
        for value in _changes(flat, donor, at):
            flat[at] = value
            changed = _outputs(oracle, [*given[:index], tensor.view(given[index].shape), *given[index + 1 :]])
            if base is not None and (changed is None or not all(map(torch.equal, base, changed))):
                seen += 1
                break
        flat[at] = old
    return least_share(seen, tried)


def _changes(flat: torch.Tensor, donor: torch.Tensor, at: int) -> list[torch.Tensor]:
    """What an element is changed to: far up, then far down; another one's where it is no number to calculate with."""
    if not flat.is_floating_point():
        return [donor[at] if bool(donor[at] != flat[at]) else donor[(at + 1) % donor.numel()]]
    far = 4 * flat.abs().nan_to_num(posinf=1.0).max() + 1
    return [far, -far]


def _outputs(oracle: Oracle, tensors: list[torch.Tensor]) -> list[torch.Tensor] | None:
    try:
        found = values.tensors_of(oracle.forward(oracle.seed, values.decode(oracle.tree, tensors)))
    except Exception:
        return None
    finally:
        oracle.restore()
    return [t.nan_to_num() if t.is_floating_point() else t.clone() for t in found]
