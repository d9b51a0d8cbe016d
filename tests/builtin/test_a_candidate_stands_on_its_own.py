"""Candidates as whole sources: state, arguments of any name and layout, repeatable, refused where nothing can be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from apps.agents.builtin.reading import read
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.writing import meaning_of
from apps.agents.words import CannotWrite
from apps.kernels.evaluation import Policy
from apps.kernels.facts import ProblemFacts
from apps.kernels.plain import to_plain
from tests.builtin.exporting import Wrapped, built, graph_of, source_of
from tests.builtin.programs import PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
WIDE = Schedule(width=512, polynomials=True, accumulators=4, reciprocals=True, keep=True, split=8)


class Awkward(nn.Module):
    """Arguments called like variables, functions and keywords of what is printed."""

    def forward(self, t, l, out, register, load, part0):  # type: ignore[no-untyped-def]  # noqa: E741
        return t + l * out - register + load / (1 + part0.abs())


class Nested(nn.Module):
    """Parameters two modules deep, a buffer that is not read, one that is."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.Sequential(nn.LayerNorm(33), nn.PReLU())
        self.register_buffer("shift", torch.arange(33.0))
        self.register_buffer("unused", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x) + self.shift


def test_arguments_of_any_name() -> None:
    inputs = tuple(torch.randn(4, 37) for _ in range(6))
    model = Awkward()
    assert torch.allclose(built(model, inputs, WIDE)(*inputs), model(*inputs), atol=1e-6)


def test_state_is_registered_under_the_names_of_the_reference() -> None:
    model, x = Nested(), torch.randn(5, 33)
    candidate = built(model, (x,), WIDE)
    assert set(candidate.state_dict()) == set(model.state_dict())
    with torch.no_grad():
        assert torch.allclose(candidate(x), model(x), atol=1e-5)


def test_an_input_in_another_layout_is_brought_into_the_one_expected() -> None:
    model = Wrapped(lambda x: x * 2 + 1)
    candidate = built(model, (torch.randn(6, 7),), WIDE)
    x = torch.randn(7, 6).t()
    assert torch.allclose(candidate(x), model(x))
    with pytest.raises(ValueError, match="was written for"):
        candidate(torch.randn(6, 8))


def test_a_number_among_the_inputs() -> None:
    model = Wrapped(lambda x, factor: x * factor)
    inputs = (torch.randn(5, 3), 2.5)
    candidate = built(model, inputs, WIDE)
    assert torch.allclose(candidate(*inputs), model(*inputs))
    with pytest.raises(ValueError, match="was written for"):
        candidate(inputs[0], 3.0)


def test_a_tuple_of_one_stays_a_tuple() -> None:
    x = torch.randn(4)
    found = built(Wrapped(lambda x: (x + 1,)), (x,), WIDE)(x)
    assert isinstance(found, tuple)
    assert torch.equal(found[0], x + 1)


PRINTS = """
import json, sys
from apps.agents.builtin.cpp.candidate import write_candidate
from apps.agents.builtin.lowering import lower
from apps.agents.builtin.reading import read
from apps.agents.builtin.schedule import Schedule
from apps.kernels.facts import Graph
from apps.kernels.plain import from_plain
graphs, schedule = json.load(sys.stdin)
schedule = Schedule.from_plain(schedule)
for graph in graphs:
    meaning = read(from_plain(Graph, graph))
    print(write_candidate(meaning, lower(meaning, schedule), (), polynomials=True, wide=True, title="."))
assert "torch" not in sys.modules
"""


def test_the_same_source_whatever_the_process() -> None:
    """Nothing may depend on the order of sets; and writing a candidate needs no torch."""
    names = ("indices of extremes", "losses", "group norm")
    graphs = [to_plain(graph_of(one.model, one.inputs())) for one in PROGRAMS if one.name in names]
    given = json.dumps([graphs, WIDE.to_plain()])
    found = {
        subprocess.run(
            [sys.executable, "-c", PRINTS], cwd=ROOT, env={"PYTHONHASHSEED": seed}, input=given, capture_output=True,
            text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(found) == 1
    assert "extern" in found.pop()


@pytest.mark.parametrize(
    ("function", "inputs", "named"),
    [
        (lambda x: torch.sort(x, 1)[0], (torch.randn(3, 4),), "aten.sort"),
        (lambda x: torch.cumsum(x.flip(0), 0).sort()[1], (torch.randn(4),), "aten.sort"),
        (lambda x: torch.fft.fft(x).real, (torch.randn(8),), "aten._fft"),
    ],
)
def test_what_can_not_be_written_is_named(function, inputs, named) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(CannotWrite, match=named):
        read(graph_of(Wrapped(function), inputs))


def test_a_large_kernel_is_not_needed_for_a_small_problem() -> None:
    """Below some size threads cost more than they bring, so none are asked for."""
    _, small = source_of(Wrapped(lambda x: x * 2), (torch.randn(8, 8),), WIDE)
    _, large = source_of(Wrapped(lambda x: x * 2), (torch.randn(512, 512),), WIDE)
    assert "#pragma omp parallel" not in small
    assert "#pragma omp parallel" in large


class Layers(nn.Module):
    """Two products with operations around each; the second is given the first with its bias."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(19, 33), nn.Linear(33, 7, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x)
        return torch.softmax(self.second(hidden), 1) * hidden.mean(1, keepdim=True)


def test_products_are_left_to_the_library_and_what_surrounds_them_is_fused() -> None:
    model, x = Layers(), torch.randn(5, 19)
    meaning, source = source_of(model, (x,), WIDE)
    assert [call.op for call in meaning.calls] == ["aten.addmm.default", "aten.mm.default"]
    assert (source.count("torch.mm("), source.count("RUN1("), source.count("RUN(")) == (2, 1, 1)
    with torch.no_grad():
        assert torch.allclose(built(model, (x,), WIDE)(x), model(x), atol=1e-6)


def test_a_convolution_and_what_follows() -> None:
    model, x = nn.Sequential(nn.Conv2d(3, 5, 3, padding=1, stride=2), nn.GELU()), torch.randn(2, 3, 9, 11)
    with torch.no_grad():
        assert torch.allclose(built(model, (x,), WIDE)(x), model(x), atol=1e-6)


def test_a_product_alone_is_refused() -> None:
    a, b = torch.randn(4, 5), torch.randn(5, 6)
    with pytest.raises(CannotWrite, match="nothing around it"):
        read(graph_of(Wrapped(lambda a, b: a @ b), (a, b)))


def test_the_policy_that_allows_own_kernels_only_leaves_products_out() -> None:
    graph = graph_of(Wrapped(lambda a, b: (a @ b).relu()), (torch.randn(4, 5), torch.randn(5, 6)))
    facts = ProblemFacts(graph=graph)
    assert meaning_of(facts, Policy.LIBRARY).calls
    with pytest.raises(CannotWrite, match=r"aten\.mm.*policy kernel"):
        meaning_of(facts, Policy.KERNEL)


class Deep(nn.Module):
    """A chain longer than Python's stack would bear if each operation were a call within another.

    None of them rounds numbers of a few binary digits, so that fusing a product and a sum makes no difference.
    """

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(200):
            x = (x * -1.0 + 0.125).abs() - 0.125
        return nn.functional.layer_norm(x, (48,))


def test_a_chain_of_any_length() -> None:
    model, x = Deep(), torch.randint(-4096, 4096, (4, 48)) / 1024
    assert torch.allclose(built(model, (x,), WIDE)(x), model(x), atol=1e-5)


def test_it_leaves_nothing_in_the_directory_for_temporary_files(tmp_path: Path) -> None:
    _, source = source_of(nn.Softsign(), (torch.rand(8, 16),), Schedule())
    (tmp_path / "candidate.py").write_text(source)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    subprocess.run(
        [sys.executable, "-c", "import candidate; assert candidate.RUN"],
        cwd=tmp_path, env={**os.environ, "TMPDIR": str(temporary)}, check=True, timeout=120,
    )  # fmt: skip
    assert list(temporary.iterdir()) == []
