"""Where rounding decides: ties that may fall either way, elements at a jump, precision that the reference does not give up."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.kernels.evaluation import JUMPS, Evaluation, EvaluationRequest, Policy, Tier, Verdict
from apps.kernels.jail import Zygote
from apps.kernels.judge.proving import prove

from .house import candidate

pytestmark = pytest.mark.judge

HEAD = "import torch\nfrom torch import nn\n"
PLACE_OF_THE_LARGEST = f"""{HEAD}
class Model(nn.Module):
    def forward(self, x): return x.argmax(1)
def get_inputs(): return [torch.randn(256, 500).round()]
def get_init_inputs(): return []
"""
STEP = f"""{HEAD}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(512, 512)
    def forward(self, x): return torch.where(self.l(x) > 0, 1.0, -1.0)
def get_inputs(): return [torch.randn(512, 512)]
def get_init_inputs(): return []
"""
PRODUCT = f"""{HEAD}
class Model(nn.Module):
    def forward(self, a, b): return a @ b
def get_inputs(): return [torch.randn(128, 128), torch.randn(128, 128)]
def get_init_inputs(): return []
"""
REDUCED = 'torch.set_float32_matmul_precision("medium")\n'


def places(better: str) -> str:
    return candidate(
        f"""
extern "C" void rows(const float* x, int64_t* y, int64_t m, int64_t n) {{
  for (int64_t i = 0; i < m; ++i) {{ int64_t b = 0;
    for (int64_t j = 1; j < n; ++j) if (x[i * n + j] {better}) b = j; y[i] = b; }} }}""",
        "y = torch.empty(x.shape[0], dtype=torch.int64)\nLIB.rows(P(x), P(y), N(x.shape[0]), N(x.shape[1]))\nreturn y",
    )


def step(above: str) -> str:
    return candidate(
        f"""
extern "C" void step(const float* x, const float* w, const float* b, float* y, int64_t m, int64_t n, int64_t k) {{
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i) for (int64_t j = 0; j < n; ++j) {{ float s = 0;
    for (int64_t l = 0; l < k; ++l) s += x[i * k + l] * w[j * k + l];
    y[i * n + j] = s + b[j] > {above} ? 1.0f : -1.0f; }} }}""",
        "y = torch.empty(x.shape[0], 512)\nl = self.l\n"
        "LIB.step(P(x), P(l.weight), P(l.bias), P(y), N(x.shape[0]), N(512), N(512))\nreturn y",
        init="self.l = nn.Linear(512, 512)",
    )


def library(more: str = "") -> str:
    return f"{HEAD}{more}class ModelNew(nn.Module):\n    def forward(self, a, b): return a @ b\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRAGMA_MEASUREMENTS", str(tmp_path))


def judged(zygote: Zygote, problem: str, source: str, policy: Policy = Policy.KERNEL) -> Evaluation:
    request = EvaluationRequest(problem, source, policy=policy, tier=Tier.QUICK, profile=False)
    return prove(request, zygote=zygote).evaluation


def test_the_last_of_equals_is_as_good_as_the_first(zygote: Zygote) -> None:
    found = judged(zygote, PLACE_OF_THE_LARGEST, places(">= x[i * n + b]"))
    assert found.verdict is Verdict.CORRECT, found.detail
    found = judged(zygote, PLACE_OF_THE_LARGEST, places("> 1.5f"))
    assert found.verdict is Verdict.INCORRECT and "elements differ" in found.detail


def test_another_order_of_summing_is_not_blamed_for_what_lies_at_the_jump(zygote: Zygote) -> None:
    found = judged(zygote, STEP, step("0.0f"))
    assert found.verdict is Verdict.CORRECT, found.detail
    assert JUMPS in [row.name for row in found.robustness]


def test_another_threshold_is(zygote: Zygote) -> None:
    found = judged(zygote, STEP, step("0.001f"))
    assert found.verdict is Verdict.INCORRECT and "are off" in found.detail


def test_reduced_precision_where_the_reference_reduces_it_and_nowhere_else(zygote: Zygote) -> None:
    both = judged(zygote, PRODUCT.replace(HEAD, HEAD + REDUCED), library(REDUCED), Policy.LIBRARY)
    assert both.verdict is Verdict.CORRECT, both.detail
    alone = judged(zygote, PRODUCT, library(REDUCED), Policy.LIBRARY)
    assert alone.verdict in (Verdict.REJECTED, Verdict.INCORRECT), "by the probes where the processor has such products"
    assert alone.verdict is Verdict.INCORRECT or "precision of float32 products" in alone.detail
