"""KernelBench's `load_inline` builds through a header of our own, and gives what Torch's headers give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from apps.kernels.inside.toolchain_names import DIRECTORY
from apps.kernels.jail import Zygote, compilers
from apps.kernels.plain import Plain

ROOT = Path(__file__).parents[2]
SOURCE = r"""
#include <cmath>
#include <tuple>
#include <vector>
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")

torch::Tensor softsign(torch::Tensor x, double a) {
    CHECK_CONTIGUOUS(x);
    auto y = torch::empty_like(x);
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "softsign", [&] {
        const scalar_t* in = x.data_ptr<scalar_t>();
        scalar_t* out = y.data_ptr<scalar_t>();
        at::parallel_for(0, x.numel(), 64, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) out[i] = in[i] / (scalar_t(a) + std::abs(in[i]));
        });
    });
    return y;
}

std::vector<torch::Tensor> sums(const at::Tensor& x, c10::optional<torch::Tensor> weight, std::vector<int64_t> shape) {
    auto total = torch::zeros({x.size(0)}, x.options().dtype(torch::kFloat64));
    auto in = x.accessor<float, 2>();
    auto out = total.accessor<double, 1>();
    for (int64_t i = 0; i < x.size(0); ++i)
        for (int64_t j = 0; j < x.size(-1); ++j) out[i] += in[i][j];
    auto turned = x.t().contiguous();
    TORCH_CHECK(turned.sizes() == torch::IntArrayRef({x.size(1), x.size(0)}), "turned to ", turned.sizes());
    return {total, turned.view(shape), weight.has_value() ? weight.value() : torch::full({2, 3}, 1.5, torch::kFloat32)};
}

std::tuple<torch::Tensor, double, int64_t> parts(torch::Tensor x, bool flat, const std::string& name) {
    return std::make_tuple(flat ? x.reshape({-1}) : x.unsqueeze(0), x.select(0, 0).item<double>(), (int64_t)name.size());
}

torch::Tensor fails(torch::Tensor x) { return x.view({7, 7, 7}); }
int64_t length(torch::Tensor x, int64_t axis) { return x.size(axis); }
void nothing(int64_t n) { if (n < 0) throw std::invalid_argument("negative"); }
"""
FUNCTIONS = ["softsign", "sums", "parts", "fails", "nothing", "length"]
# What a candidate sees, as plain data: the same whichever headers it was built with.
EXERCISE = """
import json, sys, torch
torch.manual_seed(0)
def seen(value):
    if isinstance(value, torch.Tensor): return [str(value.dtype), list(value.shape), value.double().flatten().tolist()]
    if isinstance(value, (list, tuple)): return [type(value).__name__, *map(seen, value)]
    return value
def tried(call):
    try: return seen(call())
    except Exception as problem: return [type(problem).__name__]
def exercise(m):
    x, v = torch.randn(5, 200), torch.randn(3)
    return [tried(call) for call in (
        lambda: m.softsign(x, 1), lambda: m.softsign(x.double(), 0.5), lambda: m.softsign(x.t(), 1.0),
        lambda: m.sums(x, None, [1000]), lambda: m.sums(x, v, [100, 10]), lambda: m.sums(x.double(), None, [1000]),
        lambda: m.parts(v, True, "abc"), lambda: m.parts(v, False, "é"), lambda: m.fails(x), lambda: m.nothing(3),
        lambda: m.nothing(-3), lambda: m.nothing(1.5), lambda: m.softsign(x), lambda: m.softsign(1, 1),
        lambda: m.softsign(x, "a"), lambda: m.sums(x, None, [1.5]), lambda: m.softsign(x, 1, 2),
        lambda: m.softsign(x.int(), 1), lambda: m.length(x, 1), lambda: m.length(x, 2),
    )]
"""
BUILD = """
from torch.utils.cpp_extension import load_inline
module = load_inline(name="tried", cpp_sources=SOURCE, functions=FUNCTIONS, extra_cflags=FLAGS, extra_ldflags=["-fopenmp"])
"""


def build(
    zygote: Zygote, source: str, functions: list[str], *, real: bool = False, flags: tuple[str, ...] = ()
) -> Plain:
    """Build in a jail and exercise what came of it: seconds, the results or the error, and how often a compiler ran."""
    given = f"SOURCE, FUNCTIONS, FLAGS = {source!r}, {functions!r}, {['-O1', '-fopenmp', *flags]!r}\n"
    code = (
        "import os, sys, time, traceback\n"
        "from apps.kernels.inside import extensions, toolchain\n"
        f"toolchain.prepare({{'compilers': {compilers()!r}}})\n"
        f"extensions.install(real_headers={real})\n"
        f"{given}started = time.perf_counter()\n"
        "try:\n"
        f"    exec({EXERCISE + BUILD!r})\n"
        "    result = exercise(module) if len(FUNCTIONS) > 3 else []\n"
        "except RuntimeError as problem:\n"
        "    result = str(problem)\n"
        "seconds = time.perf_counter() - started\n"
        f"record = os.path.join(os.environ['HOME'], {DIRECTORY!r}, 'commands.jsonl')\n"
        "runs = open(record).read().splitlines() if os.path.exists(record) else []\n"
        "channel.send({'result': result, 'seconds': seconds, 'runs': runs})\n"
    )
    with zygote.spawn("apps.kernels.inside.probe:run", {"code": code}) as jailed:
        said = jailed.receive(240.0)
        return {**said, "printed": jailed.output}


def test_what_kernels_use_works(zygote: Zygote) -> None:
    said = build(zygote, SOURCE, FUNCTIONS)
    results = said["result"]
    assert isinstance(results, list), results
    kinds = [result[0] if isinstance(result, list) else result for result in results]
    assert kinds[:5] == ["torch.float32", "torch.float64", "RuntimeError", "list", "list"]
    assert results[3][1][0] == "torch.float64" and results[3][3][2] == [1.5] * 6
    assert results[6][0] == "tuple" and results[6][3] == 3
    assert kinds[8:11] == ["RuntimeError", None, "RuntimeError"]
    assert set(kinds[11:17]) == {"TypeError"}
    assert kinds[17:] == ["NotImplementedError", 200, "IndexError"]
    assert len(said["runs"]) == 2, "compiled once, linked once, with no fallback"


def test_an_error_in_the_source_is_told_without_building_again(zygote: Zygote) -> None:
    said = build(zygote, "torch::Tensor f(torch::Tensor x) { int n = 1 return x; }", ["f"])
    assert "Error building extension 'tried'" in said["result"]
    assert "expected ',' or ';' before 'return'" in said["result"]
    assert len(said["runs"]) == 1


def test_it_costs_a_small_part_of_what_torch_s_headers_cost(zygote: Zygote) -> None:
    started = time.perf_counter()
    said = build(zygote, "torch::Tensor f(torch::Tensor x) { return torch::empty_like(x); }", ["f"])
    assert said["result"] == []
    assert said["seconds"] < time.perf_counter() - started < 20


@pytest.mark.judge
@pytest.mark.timeout(400)
def test_torch_s_own_headers_give_the_same(zygote: Zygote) -> None:
    """Half a minute: the header of our own held against the real one, and what it lacks built with the real one."""
    beyond = SOURCE + "torch::Tensor twice(torch::Tensor x) { return x + x; }\n"
    ours = build(zygote, SOURCE, FUNCTIONS)
    real = build(zygote, beyond, FUNCTIONS)
    assert "built with Torch's own headers, because" in real["printed"]
    assert isinstance(real["result"], list), real["result"]
    for mine, theirs in zip(ours["result"], real["result"], strict=True):
        assert mine == theirs
    assert ours["seconds"] < real["seconds"] / 3


def test_outside_the_product_the_same_source_needs_nothing_of_it(tmp_path: Path) -> None:
    """Nothing but Torch's own module is named in a candidate: it imports without PRAGMA on the path."""
    code = "import torch.utils.cpp_extension as c; print(c.load_inline.__module__)"
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "torch.utils.cpp_extension"


def test_other_names_of_the_module_are_torch_s(zygote: Zygote) -> None:
    code = (
        "from apps.kernels.inside import extensions\nextensions.install()\n"
        "import torch.utils.cpp_extension as c\nfrom torch.utils.cpp_extension import include_paths\n"
        "channel.send({'paths': include_paths(), 'same': torch_utils().cpp_extension is c})\n"
    )
    code = "import torch\ndef torch_utils():\n    return torch.utils\n" + code
    with zygote.spawn("apps.kernels.inside.probe:run", {"code": code}) as jailed:
        said: dict[str, Any] = jailed.receive(30.0)
    assert said["same"] and any(path.endswith("include") for path in said["paths"])
    assert json.dumps(said)
