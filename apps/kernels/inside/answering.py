"""Both answers for a set of inputs: torch's own and the float64 one, and what rounding may decide about them."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from apps.kernels.inside import outputs, screening, values
from apps.kernels.inside.outputs import Scores
from apps.kernels.inside.selecting import Chosen, Selecting
from apps.kernels.plain import Plain

if TYPE_CHECKING:
    from apps.kernels.inside.oracle import Oracle

LEAST_NUDGE = 0.25  # of the largest
NUDGES = 3  # random changes of the inputs, each also the other way round, show which elements lie at a discontinuity
NUDGE = (
    64  # how large they are, in units in the last place: well beyond what another order of summing moves a result by
)


@dataclass
class Answered:
    """Both answers for one set of inputs, output by output; what indices select from; which elements may jump."""

    own: list[torch.Tensor]
    exact: list[torch.Tensor]
    scores: list[Scores | None]
    jumps: list[torch.Tensor | None]


def answer(oracle: Oracle, tensors: list[torch.Tensor], *, jumps: bool = False, buffers: Plain = None) -> Answered:
    """The answers to these inputs, from the buffers as they are. `jumps` asks which elements lie at a discontinuity."""
    inputs = values.decode(oracle.tree, tensors)
    own, mine = _watched(oracle, oracle.forward, oracle.seed, inputs)
    oracle.write_buffers(buffers)
    oracle.restore()
    exact, true = own, mine
    if oracle.double:
        exact, true = _watched(oracle, oracle.forward_double, inputs)
        oracle.restore()
    terms = oracle.reductions or [1] * len(own)
    scores = [_scores(oracle, *row) for row in zip(oracle.selects, terms, mine, true, strict=True)]
    return Answered(own, exact, scores, _jumps(oracle, tensors, exact, scores) if jumps else [None] * len(own))


def what_is_selected(oracle: Oracle, inputs: Any, returned: list[torch.Tensor]) -> list[Plain]:
    """For each output of indices the rows they select from, None for any other output."""
    if all(t.is_floating_point() or t.dtype == torch.bool for t in returned):
        return [None] * len(returned)
    with Selecting() as selecting:
        again = values.tensors_of(oracle.forward(oracle.seed, inputs))
    oracle.restore()
    return [_selection(selecting.of(tensor), tensor) for tensor in again]


def nudged(oracle: Oracle, tensors: list[torch.Tensor], relative: float, seed: int) -> list[torch.Tensor]:
    """The exact answer to inputs of which each element is changed by up to this much up or down, by chance.

    By amounts that differ: where a result hangs on the ratio of two elements, it moves.
    """
    generator = torch.Generator().manual_seed(seed)
    moved = []
    for tensor in tensors:
        if not tensor.is_floating_point():
            moved.append(tensor)
            continue
        wide = tensor.double() if oracle.double else tensor
        signs = torch.randint(0, 2, tensor.shape, generator=generator, dtype=torch.int8) * 2 - 1
        sizes = torch.rand(tensor.shape, generator=generator).mul_(1 - LEAST_NUDGE).add_(LEAST_NUDGE)
        moved.append((wide * (1 + relative * (sizes * signs).to(wide.dtype))).to(wide.dtype))
    inputs = values.decode(oracle.tree, moved)
    result = oracle.forward_double(inputs) if oracle.double else oracle.forward(oracle.seed, inputs)
    oracle.restore()
    return values.tensors_of(result)


def _watched(oracle: Oracle, forward: Any, *arguments: Any) -> tuple[list[torch.Tensor], list[Chosen | None]]:
    """A call's outputs, and what those of indices select from."""
    choosing = any(oracle.selects)
    with Selecting() if choosing else nullcontext() as selecting:
        found = values.tensors_of(forward(*arguments))
    return found, [selecting.of(t) if selecting else None for t in found]


def _selection(chosen: Chosen | None, indices: torch.Tensor) -> Plain:
    if chosen is None:
        return None
    rows = chosen.rows()
    if rows.shape[1] == 0 or indices.numel() % max(1, rows.shape[0]):
        return None
    dim = chosen.axis if chosen.several else None
    return {"rows": rows.shape[0], "n": rows.shape[1], "dim": dim, "ordered": chosen.ordered}


def _scores(oracle: Oracle, spec: Plain, terms: int, mine: Chosen | None, true: Chosen | None) -> Scores | None:
    """What an output's indices select from, and how much worse than the best is within rounding."""
    if spec is None or mine is None or true is None:
        return None
    exact, own = true.rows().double(), mine.rows()
    limit = 0.0
    if own.is_floating_point():
        kind = torch.finfo(own.dtype)
        scale = exact.abs().nan_to_num(posinf=0.0).amax(1, keepdim=True).clamp_min(kind.tiny)
        error = float(((own.double() - exact).abs() / scale).nan_to_num(posinf=0.0).max())
        if error:  # where nothing was rounded, as in values that are inputs themselves, there is a best one
            limit = max(screening.own_factor(kind) * min(error, oracle.near), screening.least(kind, terms))
    return Scores(exact, spec["dim"], limit, bool(spec["ordered"]))


def _jumps(
    oracle: Oracle, tensors: list[torch.Tensor], exact: list[torch.Tensor], scores: list[Scores | None]
) -> list[torch.Tensor | None]:
    """Elements that change by more than rounding when the inputs change by no more: they lie at a discontinuity."""
    found = [
        None if chosen is not None else torch.zeros(tensor.shape, dtype=torch.bool)
        for tensor, chosen in zip(exact, scores, strict=True)
    ]
    eps = max((torch.finfo(t.dtype).eps for t in tensors if t.is_floating_point()), default=2.0**-23)
    far = min(NUDGE * eps, max(eps, NUDGE * 2.0**-23))  # of the shorter types one unit is far enough
    near = max(oracle.near, outputs.NEAR_ULPS * eps)
    for seed, change in itertools.product(range(NUDGES), (far, -far)):
        moved = nudged(oracle, tensors, change, seed)
        for mask, before, after in zip(found, exact, moved, strict=True):
            if mask is not None:
                mask |= outputs.jumped(before, after, near)
    return found
