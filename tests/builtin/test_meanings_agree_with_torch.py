"""What graphs are read as, by the interpreter, against Torch in float64; and index arithmetic by counting."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch

from apps.agents.builtin.index import Axis, Index, joined, unjoined
from apps.agents.builtin.interpreter import interpret
from apps.agents.builtin.reading import read
from tests.builtin.exporting import Wrapped, graph_of
from tests.builtin.programs import random_steps


def _agree(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
    graph = graph_of(model, inputs)
    meaning = read(graph)
    memory: dict[str, Any] = {
        fact.name: tensor.reshape(-1).tolist() for fact, tensor in zip(meaning.inputs, inputs, strict=False)
    }
    memory.update(meaning.constants)
    wanted = model(*inputs)
    for value, right in zip(meaning.outputs, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
        assert value.shape == tuple(right.shape)
        found = torch.tensor([float(one) for one in interpret(value, memory)], dtype=torch.float64)
        assert torch.allclose(found, right.reshape(-1).double(), rtol=1e-10, atol=1e-10, equal_nan=True)


@pytest.mark.parametrize("seed", range(24))
def test_a_random_program(seed: int) -> None:
    torch.manual_seed(seed)
    x = torch.randn(*random.Random(seed).choice([(4,), (3, 4), (2, 3, 4), (2, 1, 5)]), dtype=torch.float64)
    _agree(Wrapped(lambda x: random_steps(x, random.Random(seed))), (x,))


def test_indices_of_extremes_with_nan() -> None:
    x = torch.randn(4, 5, dtype=torch.float64)
    x[1, 2] = x[1, 4] = math.nan
    x[2, :] = 1.0
    _agree(Wrapped(lambda x: (x.argmax(1), x.argmin(0), x.max(1)[0], x.argmax())), (x,))


def test_quotients_and_remainders_by_counting() -> None:
    chance = random.Random(1)
    for _ in range(200):
        axes = [Axis(i, chance.randint(1, 5)) for i in range(3)]
        index = Index.of(chance.randint(0, 7))
        for axis in axes:
            index = index + Index.of(axis) * chance.choice([0, 1, 2, 3, 6, 12])
        by, again = chance.choice([2, 3, 4, 6]), chance.choice([2, 3])
        for _ in range(5):
            point = {axis: chance.randrange(axis.extent) for axis in axes}
            value = index.value(point)
            assert index.quotient(by).value(point) == value // by
            assert index.remainder(by).value(point) == value % by
            assert index.quotient(by).remainder(again).value(point) == value // by % again
            low, high = index.quotient(by).range()
            assert low <= value // by <= high


def test_a_reshape_that_splits_and_joins_leaves_no_division() -> None:
    axes = [Axis(0, 6), Axis(1, 8)]
    here = unjoined(joined(tuple(Index.of(axis) for axis in axes), (6, 8)), (6, 2, 4))
    back = joined(here, (6, 2, 4))
    assert back == Index.of(axes[0]) * 8 + Index.of(axes[1])
    assert not list(back.divisions())
