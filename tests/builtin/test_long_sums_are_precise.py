"""Sums of many terms written on vectors stay as near to float64 as Torch's own: no accumulator takes a long chain of them."""

from __future__ import annotations

import pytest
import torch

from apps.agents.builtin.schedule import Schedule
from tests.builtin.exporting import Wrapped, built

VECTORS = Schedule(width=256, polynomials=True)
TERMS = (1 << 18) + 5


@pytest.mark.parametrize(
    "schedule",
    [VECTORS, VECTORS.having(accumulators=4), VECTORS.having(split=8), VECTORS.having(split=8, accumulators=4)],
    ids=["one accumulator", "four", "split", "split, four"],
)
def test_a_sum_of_positive_terms_loses_no_digit(schedule: Schedule) -> None:
    x = torch.rand(3, TERMS, generator=torch.Generator().manual_seed(1)) + 0.5
    found = built(Wrapped(lambda x: x.sum(1)), (x,), schedule)(x)
    right = x.double().sum(1)
    assert (
        (found.double() - right).abs() / right
    ).max() < 5e-7  # eight units in the last place; one chain is off by 1e-5


def test_a_mean_of_squares_over_several_axes_does_not_either() -> None:
    x = torch.rand(2, 8, 4096, generator=torch.Generator().manual_seed(2)) * 3 + 100
    found = built(Wrapped(lambda x: (x * x).mean((1, 2))), (x,), VECTORS)(x)
    right = (x.double() ** 2).mean((1, 2))
    assert ((found.double() - right).abs() / right).max() < 5e-7
