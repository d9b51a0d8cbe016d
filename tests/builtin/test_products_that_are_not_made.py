"""Products: computed another way where that is less work, else the library's, with what surrounds them in kernels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from apps.agents.builtin.interpreter import interpret
from apps.agents.builtin.reading import read
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.writing import meaning_of
from apps.kernels.evaluation import Policy
from apps.kernels.facts import ProblemFacts
from tests.builtin.exporting import Wrapped, built, graph_of, source_of

WIDE = Schedule(width=512, polynomials=True, accumulators=4, reciprocals=True, keep=True, split=8)

LESS_WORK: list[tuple[str, Any, tuple[tuple[int, ...], ...]]] = [
    ("sum over columns", lambda a, b: (a @ b).sum(1), ((9, 11), (11, 13))),
    ("sum over rows", lambda a, b: (a @ b).sum(0), ((9, 11), (11, 13))),
    ("sum over all", lambda a, b: (a @ b).sum() * 2, ((9, 11), (11, 13))),
    ("mean of a linear layer", lambda x, w, b: F.linear(x, w, b).mean(1, keepdim=True) / 3, ((9, 11), (13, 11), (13,))),
    ("diagonal on the left", lambda d, b: torch.diag(d) @ b, ((9,), (9, 13))),
    ("diagonal on the right", lambda a, d: a @ torch.diag(d), ((9, 13), (13,))),
    ("many at once", lambda a, b: torch.bmm(a, b).sum(2), ((3, 5, 7), (3, 7, 9))),
]


@pytest.mark.parametrize(("name", "function", "shapes"), LESS_WORK, ids=[one[0] for one in LESS_WORK])
def test_less_work_in_another_order(name: str, function: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
    torch.manual_seed(0)
    inputs = tuple(torch.randn(shape, dtype=torch.float64) for shape in shapes)
    meaning = read(graph_of(Wrapped(function), inputs))
    assert meaning.calls == ()
    memory = {fact.name: tensor.reshape(-1).tolist() for fact, tensor in zip(meaning.inputs, inputs, strict=True)}
    found = torch.tensor(interpret(meaning.outputs[0], {**memory, **meaning.constants}), dtype=torch.float64)
    assert torch.allclose(found, function(*inputs).reshape(-1), rtol=1e-11, atol=1e-11)


def test_no_call_is_left_so_that_a_policy_of_own_kernels_allows_it() -> None:
    function, shapes = LESS_WORK[3][1:]
    inputs = tuple(torch.randn(shape) for shape in shapes)
    model = Wrapped(function)
    assert meaning_of(ProblemFacts(graph=graph_of(model, inputs)), Policy.KERNEL).calls == ()
    assert torch.allclose(built(model, inputs, WIDE)(*inputs), model(*inputs), atol=1e-5)


def test_a_product_that_is_needed_whole_stays_the_librarys() -> None:
    for function in (
        lambda a, b: (a @ b).relu(),
        lambda a, b: (a @ b).relu().sum(1),
        lambda a, b: torch.softmax(a @ b, 1),
    ):
        meaning = read(graph_of(Wrapped(function), (torch.randn(9, 11), torch.randn(11, 13))))
        assert [call.op for call in meaning.calls] == ["aten.mm.default"]


class Perceptron(nn.Module):
    """Products of computed values, one of them read twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(19, 32), nn.Linear(32, 16)
        self.third = nn.Linear(16, 16, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.first(x))
        inner = F.gelu(self.second(hidden)) - hidden.mean(1, keepdim=True)
        return torch.softmax(self.third(inner) + inner, 1)


@pytest.mark.parametrize("schedule", [Schedule(), WIDE], ids=["plain", "wide"])
def test_products_of_computed_values(schedule: Schedule) -> None:
    torch.manual_seed(0)
    model, x = Perceptron(), torch.randn(6, 19)
    meaning, source = source_of(model, (x,), schedule)
    assert len(meaning.calls) == 3
    assert len(meaning.operands) == 2
    assert "RUN1(" in source
    with torch.no_grad():
        assert torch.allclose(built(model, (x,), schedule)(x), model(x), atol=1e-5)


def test_a_convolution_of_computed_values() -> None:
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU(), nn.Conv2d(5, 4, 3), nn.Tanh()), torch.randn(2, 3, 9, 11)
    with torch.no_grad():
        assert torch.allclose(built(model, (x,), WIDE)(x), model(x), atol=1e-5)


def test_the_same_product_is_made_once() -> None:
    function = Wrapped(lambda a, b: (a @ b).relu() + (a @ b).tanh())
    assert source_of(function, (torch.randn(8, 24), torch.randn(24, 32)), WIDE)[1].count("torch.mm(") == 1


def _times_itself_backwards(x: torch.Tensor) -> torch.Tensor:
    return x * x.flip(1)


def test_a_result_takes_the_products_memory_only_where_each_place_is_read_by_itself() -> None:
    a, b = torch.randn(8, 24), torch.randn(24, 32)
    alone = Wrapped(lambda a, b: F.gelu(a @ b) * 2)
    assert ".view((8, 32))" in source_of(alone, (a, b), WIDE)[1]
    for function in (
        lambda a, b: torch.softmax(a @ b, 1),
        lambda a, b: _times_itself_backwards(a @ b),
        lambda a, b: (a @ b).relu()[:, 1:],
        lambda a, b: ((a @ b).relu(), (a @ b).tanh()),
        lambda a, b: (a @ b).relu().t().contiguous(),
    ):
        assert ".view((" not in source_of(Wrapped(function), (a, b), WIDE)[1]
    for model in (alone, Wrapped(lambda a, b: (a @ b).relu() + a.mean(0).sum())):
        assert torch.allclose(built(model, (a, b), WIDE)(a, b), model(a, b), atol=1e-5)
