"""Printed C++ against Torch, from the plainest schedule to the richest."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

from apps.agents.builtin.schedule import Schedule
from tests.builtin.exporting import imported, source_of
from tests.builtin.programs import PROGRAMS, Program, random_steps

SCHEDULES = {
    "naive": Schedule(),
    "narrow": Schedule(width=256, accumulators=2, split=8, tile=64, block=1024),
    "richest": Schedule(
        width=512, polynomials=True, accumulators=4, streaming=True, reciprocals=True, keep=True, ahead=True, online=True,
        moments=True, split=8,
    ),
}  # fmt: skip
UNITS = {torch.float32: 1.2e-7, torch.float64: 2.3e-16, torch.bfloat16: 8e-3}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_with_all_that_a_schedule_can_ask_for(program: Program) -> None:
    _check(program, SCHEDULES["richest"])


@pytest.mark.parametrize("program", PROGRAMS[::3], ids=lambda program: program.name)
def test_as_plain_loops(program: Program) -> None:
    _check(program, SCHEDULES["naive"])


NARROW = (
    "sums over some", "indices of extremes", "layer norm", "rows normalised", "few long rows", "running sums",
    "largest of windows",
)  # fmt: skip


@pytest.mark.parametrize("name", NARROW)
def test_narrow_vectors_small_tiles_and_blocks(name: str) -> None:
    _check(next(program for program in PROGRAMS if program.name == name), SCHEDULES["narrow"])


@pytest.mark.parametrize("seed", range(100, 106))
def test_a_random_program(seed: int) -> None:
    shape = random.Random(seed).choice([(70,), (3, 41), (5, 6, 37), (33, 3, 18)])
    program = Program("random", lambda x: random_steps(x, random.Random(seed)), lambda: (torch.randn(shape),))
    _check(program, SCHEDULES["richest" if seed % 2 else "narrow"])


def _check(program: Program, schedule: Schedule) -> None:
    torch.manual_seed(0)
    inputs = program.inputs()
    _, source = source_of(program.model, inputs, schedule)
    # Quickly built: what is optimised is the compiler's business, what is computed is ours.
    candidate = imported(source.replace('"-O3"', '"-O1"')).ModelNew()
    found, wanted = candidate(*inputs), program.function(*inputs)
    exact = program.function(*(_widened(one) for one in inputs))
    for one, expected, right in zip(_many(found), _many(wanted), _many(exact), strict=True):
        _compare(one, expected, right)
    for first, second in zip(_many(found), _many(candidate(*inputs)), strict=True):
        assert torch.equal(first.nan_to_num(), second.nan_to_num()), "a second call gave other bits"


def _many(result: Any) -> tuple[torch.Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


def _widened(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.dtype == torch.float32 else value


def _compare(found: torch.Tensor, wanted: torch.Tensor, exact: torch.Tensor) -> None:
    """As near to float64 as three times Torch's own distance and a few units in the last place."""
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if not wanted.is_floating_point():
        assert torch.equal(found, wanted)
        return
    # gelu of an infinite number is NaN by torch's code for some processors, and not by that for others
    wanted = torch.where(wanted.isnan() & (found == exact.to(wanted.dtype)), found, wanted)
    assert torch.equal(found.isnan(), wanted.isnan())
    ordinary = wanted.isfinite() & exact.isfinite()
    assert torch.equal(found[~ordinary].nan_to_num(), wanted[~ordinary].nan_to_num())
    if ordinary.any():
        right = exact[ordinary].double()
        scale = right.abs() + 0.05 * right.abs().max()
        mine, torchs = ((one[ordinary].double() - right).abs() / scale.clamp_min(1e-300) for one in (found, wanted))
        assert float(mine.max()) <= 3 * float(torchs.max()) + 20 * UNITS[wanted.dtype]
