"""Answers that compute nothing of a problem, or not all of it: what its checks must tell from the right one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from apps.kernels.inside import values
from apps.kernels.inside.draw_names import AS_GIVEN
from apps.kernels.inside.lowered import LEVELS, Level, Lowered

if TYPE_CHECKING:
    from apps.kernels.inside.examining import Case
    from apps.kernels.inside.oracle import Oracle

Outputs = list[torch.Tensor]
A_FEW = 32  # of so many terms one is left out


@dataclass(frozen=True)
class Mutant:
    """A wrong answer by what it does; `make` gives its outputs for a case, None where it can't be made there."""

    name: str
    make: Callable[[Case], Outputs | None]
    level: Level | None = None  # a lower precision, where that is what is wrong with it
    ignores: int | None = None  # an input that it does not read
    takes_as_given: int | None = None  # integers or booleans that it takes for what they are as given
    derived: bool = False  # made as the right answer is: where it equals that, nothing is wrong with it


def mutants(oracle: Oracle, case: Case) -> Iterator[Mutant]:
    """All that can be made for this problem; what a candidate might do instead of computing it."""
    yield Mutant("zeros", lambda c: [torch.zeros_like(t) for t in c.own])
    yield Mutant(
        "a constant", lambda c: [_full(t, _mean(other)) for t, other in zip(c.own, c.other_answer, strict=True)]
    )
    if any(t.numel() > 1 for t in case.own):
        yield Mutant("the mean of the right values", lambda c: [_full(t, _mean(t)) for t in c.own], derived=True)
    yield Mutant("each row's mean of the right values", _row_means, derived=True)
    yield Mutant("the answer to other inputs", lambda c: c.other_answer)
    yield from _identities(case)
    if len(case.tensors) > 1:
        for index in range(len(case.tensors)):
            yield Mutant(f"an answer that ignores input {index}", _ignoring(oracle, index), ignores=index, derived=True)
    for index, tensor in enumerate(case.tensors):
        if tensor.is_floating_point() and tensor.ndim and tensor.shape[-1] > 1:
            name = f"an answer from every second element of input {index}"
            yield Mutant(name, _thinned(oracle, index, 2), derived=True)
            if tensor.shape[-1] >= A_FEW:
                name = f"an answer without one element in {A_FEW} of input {index}"
                yield Mutant(name, _thinned(oracle, index, A_FEW), derived=True)
        if tensor.is_floating_point() and tensor.numel() >= A_FEW * A_FEW:
            yield Mutant(f"an answer without the end of input {index}", _cut(oracle, index), derived=True)
        if not tensor.is_floating_point():
            name = f"an answer that takes input {index} for what it is as given"
            yield Mutant(name, _as_given(oracle, index), takes_as_given=index, derived=True)
    for level in LEVELS.get(_precision(case), ()):
        yield Mutant(level.name, _lowered(oracle, level), level=level)


def _precision(case: Case) -> torch.dtype:
    """The data type that the problem computes in: of its outputs, else of its inputs."""
    kinds = [t.dtype for t in (*case.own, *case.tensors) if t.is_floating_point()]
    return kinds[0] if kinds else torch.int64


def _mean(tensor: torch.Tensor) -> float:
    finite = tensor.double()
    finite = finite[torch.isfinite(finite)]
    return float(finite.mean()) if finite.numel() else 0.0


def _full(like: torch.Tensor, value: float) -> torch.Tensor:
    return torch.full_like(like, value if like.is_floating_point() else round(value))


def _row_means(case: Case) -> Outputs | None:
    if not any(t.ndim > 1 and t.shape[-1] > 1 for t in case.own):
        return None
    return [
        t.double().mean(-1, keepdim=True).expand(t.shape).to(t.dtype) if t.ndim > 1 and t.is_floating_point() else t
        for t in case.own
    ]


def _identities(case: Case) -> Iterator[Mutant]:
    """An input given back, where it has the shape and data type of the only output."""
    if len(case.own) != 1:
        return
    (own,) = case.own
    for index, tensor in enumerate(case.tensors):
        if tensor.shape == own.shape and tensor.dtype == own.dtype:
            yield Mutant(f"input {index} itself", lambda c, i=index: [c.tensors[i]])  # type: ignore[misc]


def _ignoring(oracle: Oracle, index: int) -> Callable[[Case], Outputs | None]:
    def make(case: Case) -> Outputs | None:
        tensors = list(case.tensors)
        tensors[index] = case.others[index]
        return _answered(oracle, tensors)

    return make


def _thinned(oracle: Oracle, index: int, each: int) -> Callable[[Case], Outputs | None]:
    """One element in `each` along the last axis has the value of the one before it."""

    def make(case: Case) -> Outputs | None:
        tensors = list(case.tensors)
        tensors[index] = thin = tensors[index].clone()
        whole = thin.shape[-1] // each * each
        thin[..., each - 1 : whole : each] = thin[..., each - 2 : whole : each].clone()
        return _answered(oracle, tensors)

    return make


def _cut(oracle: Oracle, index: int) -> Callable[[Case], Outputs | None]:
    """The last few elements have the values of those before them."""

    def make(case: Case) -> Outputs | None:
        tensors = list(case.tensors)
        flat = tensors[index].reshape(-1).clone()
        few = flat.numel() // A_FEW
        flat[-few:] = flat[-2 * few : -few].clone()
        tensors[index] = flat.view(tensors[index].shape)
        return _answered(oracle, tensors)

    return make


def _as_given(oracle: Oracle, index: int) -> Callable[[Case], Outputs | None]:
    def make(case: Case) -> Outputs | None:
        tensors = list(case.tensors)
        tensors[index] = oracle.drawn(case.seed, AS_GIVEN)[index]
        return _answered(oracle, tensors)

    return make


def _lowered(oracle: Oracle, level: Level) -> Callable[[Case], Outputs | None]:
    def make(case: Case) -> Outputs | None:
        with Lowered(level) as lower:
            found = _answered(oracle, case.tensors)
        oracle.restore()  # what was given back inside was rounded as well
        return found if lower.rounded else None

    return make


def _answered(oracle: Oracle, tensors: list[torch.Tensor]) -> Outputs | None:
    """What the reference says of these inputs; None where it can't take them."""
    try:
        return values.tensors_of(oracle.forward(oracle.seed, values.decode(oracle.tree, tensors)))
    except Exception:
        return None
    finally:
        oracle.restore()
