"""What the jail finds out about a problem, and why it refuses one."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from apps.kernels.evaluation import Progress
from apps.kernels.facts import Graph, ProblemFacts
from apps.kernels.inspect import inspect
from apps.kernels.jail import Zygote
from apps.kernels.plain import from_plain, to_plain

PROBLEMS = Path(__file__).parents[2] / "problems"
BUILT_IN = {
    "elementwise/softsign.py": {"aten.abs.default", "aten.add.Tensor", "aten.div.Tensor"},
    "reduction/softmax.py": {
        "aten.amax.default", "aten.sub.Tensor", "aten.exp.default", "aten.sum.dim_IntList", "aten.div.Tensor",
    },
    "normalization/layer_norm.py": {
        "aten.var_mean.correction", "aten.add.Tensor", "aten.rsqrt.default", "aten.sub.Tensor", "aten.mul.Tensor",
    },
    "product/linear_gelu.py": {
        "aten.permute.default", "aten.addmm.default", "aten.mul.Tensor", "aten.erf.default", "aten.add.Tensor",
    },
}  # fmt: skip


def problem(forward: str, *, inputs: str = "[torch.randn(4, 6)]", init: str = "", before: str = "") -> str:
    constructor = (
        f"    def __init__(self):\n        super().__init__()\n{textwrap.indent(init, ' ' * 8)}\n" if init else ""
    )
    return (
        f"import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n{before}\n\n"
        f"class Model(nn.Module):\n{constructor}    def forward(self, x, *rest):\n{textwrap.indent(forward, ' ' * 8)}\n\n"
        f"def get_inputs():\n    return {inputs}\n\ndef get_init_inputs():\n    return []\n"
    )


def graph_of(facts: ProblemFacts) -> Graph:
    assert facts.refusal is None
    assert facts.graph is not None, facts.graph_refusal
    return facts.graph


@pytest.mark.parametrize("path", BUILT_IN)
def test_a_problem_that_comes_with_it(path: str, zygote: Zygote) -> None:
    news: list[Progress] = []
    facts = inspect((PROBLEMS / path).read_text(), zygote=zygote, observe=news.append)
    assert {node.op for node in graph_of(facts).nodes} == BUILT_IN[path]
    assert facts.memory_bytes and facts.flops and facts.operators
    moved = sum(fact.bytes for fact in (*facts.inputs, *facts.parameters, *facts.outputs))
    assert facts.compulsory_bytes == moved
    assert [one.message for one in news][-1] == "graph"
    assert from_plain(ProblemFacts, to_plain(facts)) == facts


def test_sizes_set_are_the_sizes_described(zygote: Zygote) -> None:
    facts = inspect(
        (PROBLEMS / "elementwise/swish_bias.py").read_text(), {"channels": 3, "batch_size": 2}, zygote=zygote
    )
    assert facts.inputs[0].shape == (2, 3, 56, 56)
    assert facts.init_inputs == (3,)
    assert {(p.target, p.shape) for p in facts.parameters} == {("bias", (3, 1, 1)), ("scale", (3, 1, 1))}


def test_flops_follow_the_convention(zygote: Zygote) -> None:
    forward = "return F.linear(torch.exp(x) + 1, self.w).sum()"
    facts = inspect(problem(forward, init="self.w = nn.Parameter(torch.randn(5, 6))"), zygote=zygote)
    assert facts.flops == 24 + 24 + 2 * 4 * 6 * 5 + 20


def test_only_what_is_read_must_be_moved(zygote: Zygote) -> None:
    halves = inspect(problem("a, b = x.chunk(2, 1)\nreturn a * 2"), zygote=zygote)
    assert halves.compulsory_bytes == 4 * (4 * 3) * 2
    overlap = inspect(problem("return x[:, 1:] - x[:, :-1]"), zygote=zygote)
    assert overlap.compulsory_bytes == 4 * (24 + 20)
    spread = inspect(problem("return x[:1].expand(4, 6) * 2"), zygote=zygote)
    assert spread.compulsory_bytes == 4 * (6 + 24)
    unused = inspect(problem("return x + 1", inputs="[torch.randn(4, 6), torch.randn(100)]"), zygote=zygote)
    assert unused.compulsory_bytes == 4 * 48


def test_small_constants_carry_their_values(zygote: Zygote) -> None:
    graph = graph_of(inspect(problem("return x * torch.tensor([1.0, 2, 3, 4, 5, 6])"), zygote=zygote))
    (values,) = graph.constants.values()
    assert values == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    assert next(iter(graph.constants)) in {fact.name for fact in graph.inputs if fact.kind == "constant"}


def test_results_arguments_and_splits_are_written_out(zygote: Zygote) -> None:
    forward = "v, i = torch.max(x, 1)\nparts = x.split([2, 4], 1)\nreturn v, i, parts[1] * float('inf')"
    graph = graph_of(inspect(problem(forward), zygote=zygote))
    by_op = {node.op: node for node in graph.nodes}
    assert by_op["aten.max.dim"].args == ({"ref": "x"}, 1, False)
    assert [(fact.dtype, fact.shape) for fact in by_op["aten.max.dim"].outputs] == [("float32", (4,)), ("int64", (4,))]
    assert by_op["aten.slice.Tensor"].args == ({"ref": "x"}, 1, 2, 6, 1)
    assert by_op["aten.mul.Tensor"].args[1] == {"float": "inf"}
    assert graph.nested
    assert graph.outputs[:2] == ({"ref": "max_1", "index": 0}, {"ref": "max_1", "index": 1})


def test_buffers_that_a_call_updates_are_named(zygote: Zygote) -> None:
    facts = inspect(problem("return self.bn(x)", init="self.bn = nn.BatchNorm1d(6)"), zygote=zygote)
    assert set(graph_of(facts).mutates) >= {"bn.running_mean", "bn.running_var"}
    assert "updates buffers" in {quirk.name for quirk in facts.quirks}


def test_scalars_and_strides_of_inputs(zygote: Zygote) -> None:
    facts = inspect(problem("return x * rest[0]", inputs="[torch.randn(6, 4).t(), 2.5]"), zygote=zygote)
    assert facts.inputs[0].strides == (1, 4)
    assert (facts.inputs[1].dtype, facts.inputs[1].value) == ("scalar", 2.5)


def test_a_program_that_looks_at_values_has_no_graph_but_facts(zygote: Zygote) -> None:
    facts = inspect(problem("return x * 2 if x.sum() > 0 else x"), zygote=zygote)
    assert facts.refusal is None and facts.graph is None
    assert "torch.export refused it" in (facts.graph_refusal or "")
    assert facts.outputs[0].shape == (4, 6)


HUGE = "N, M = 223607, 223607"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (problem("return x + torch.rand_like(x)"), "output is random.*line 8: forward draws random numbers"),
        (problem("return x + 1e-4 * torch.rand_like(x)"), "output is random"),
        (problem("return self.d(x)", init="self.d = nn.Dropout(0.5)"), "output is random.*Dropout"),
        (problem("return x @ x"), r"reference raises RuntimeError: mat1 and mat2.*\(line 8: return x @ x\)"),
        (problem("return x", before="import triton_of_tomorrow"), "triton_of_tomorrow is not installed.*torch alone"),
        (problem("return x", inputs="[torch.rand(3).cuda()]"), "Make tensors on the CPU, without .cuda"),
        (problem("return x", inputs="[torch.rand(3, device='cuda')]"), "Make tensors on the CPU, without .cuda"),
        (problem("return x", inputs="[]"), r"get_inputs\(\) returns what forward takes"),
        (problem("raise ValueError('no good')"), r"raises ValueError: no good \(line 8"),
        (problem("return 3.0"), "returns no tensor"),
        (problem("return x.mul_(2)"), "changes its input 0 in place"),
        (problem("return x", inputs="torch.randn(3)"), "get_inputs must return a list"),
        (problem("return x", before="open('/etc/shadow')"), r"raises .*(line 4: open\('/etc/shadow'\))"),
        (problem("return x", before="import os; os._exit(3)"), "left with exit code 3"),
        (problem("import ctypes\nctypes.string_at(0)"), "killed by SIGSEGV"),
        (problem("return x * 2", before=HUGE, inputs="[torch.rand(N, M)]"), r"inputs take 200 GB.*would fit with N=\d+"),
        (problem("return (x[:, None] * x).sum()", before="N = 300000", inputs="[torch.rand(N)]"), r"judging it needs.*N=\d+"),
        (
            problem("return self.l(x)", before="N = 400000", init="self.l = nn.Linear(N, N)", inputs="[torch.rand(1, N)]"),
            r"Too large for this host.*N=\d+",
        ),
    ],
)  # fmt: skip
def test_a_problem_that_can_t_be_judged_says_why(source: str, says: str, zygote: Zygote) -> None:
    facts = inspect(source, zygote=zygote)
    assert facts.refusal is not None
    assert facts.graph is None
    import re

    assert re.search(says, facts.refusal, re.S), facts.refusal
    assert "Traceback" not in facts.refusal and "/apps/kernels" not in facts.refusal


def test_what_would_fit_does_fit(zygote: Zygote) -> None:
    source = problem("return x * 2", before="N = 1 << 36", inputs="[torch.rand(N)]")
    room = 2 << 30
    refusal = inspect(source, zygote=zygote, memory_bytes=room).refusal or ""
    fitting = int(refusal.rpartition("N=")[2].rstrip("."))
    assert inspect(source, {"N": fitting}, zygote=zygote, memory_bytes=room).refusal is None
    assert inspect(source, {"N": fitting * 4}, zygote=zygote, memory_bytes=room).refusal is not None


def test_a_problem_that_never_ends_is_given_up(zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.kernels.inspect.SECONDS", 3.0)
    facts = inspect(problem("while True:\n    pass"), zygote=zygote)
    assert "took more than 3 s" in (facts.refusal or "")
