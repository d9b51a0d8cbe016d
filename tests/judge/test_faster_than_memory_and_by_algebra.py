"""Two that are far faster than torch: one never touches most of its output, one needs less work than was written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from apps.kernels.evaluation import ALGEBRA, Evaluation, EvaluationRequest, Tier, Verdict
from apps.kernels.host.ceilings import measure_ceilings
from apps.kernels.host.report import host_report
from apps.kernels.jail import Zygote
from apps.kernels.judge import evaluate, ruling
from apps.kernels.machine import HostReport

from .house import candidate

pytestmark = pytest.mark.judge

PADDED = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x): return nn.functional.pad(x, (0, (1 << 23) - 1024))
def get_inputs(): return [torch.randn(1024)]
def get_init_inputs(): return []
"""
# Fresh pages of the system's read as zeros: whoever reads the output pays for it, after the call.
UNTOUCHED = candidate(
    "",
    "pages = mmap.mmap(-1, 1 << 25)\ny = torch.frombuffer(pages, dtype=torch.float32)\n"
    "ctypes.memmove(y.data_ptr(), x.data_ptr(), 4096)\nreturn y",
    more="import mmap",
)
ROWS_OF_A_PRODUCT = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, a, b): return (a @ b).sum(1)
def get_inputs(): return [torch.randn(512, 512), torch.randn(512, 512)]
def get_init_inputs(): return []
"""
SUMMED_FIRST = candidate(
    """
extern "C" void rows(const float* a, const float* b, float* s, float* y, int64_t n) {
#pragma omp parallel
  {
#pragma omp for
    for (int64_t i = 0; i < n; ++i) { float t = 0;
#pragma omp simd reduction(+:t)
      for (int64_t j = 0; j < n; ++j) t += b[i * n + j]; s[i] = t; }
#pragma omp for
    for (int64_t i = 0; i < n; ++i) { float t = 0;
#pragma omp simd reduction(+:t)
      for (int64_t j = 0; j < n; ++j) t += a[i * n + j] * s[j]; y[i] = t; }
  }
}""",
    "y, s = torch.empty(a.shape[0]), torch.empty(a.shape[0])\n"
    "LIB.rows(P(a), P(b), P(s), P(y), N(a.shape[0]))\nreturn y",
    arguments="a, b",
)


@pytest.fixture(scope="module")
def host() -> HostReport:
    """This host with its bandwidth measured in a few seconds, and a peak that a busy machine passes too."""
    measured = measure_ceilings(budget_ms=6, rounds=2).ceilings
    return replace(host_report(quick=True), ceilings=replace(measured, peak_gflops={"fp32_all": 1.0}))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRAGMA_LOCKS", str(tmp_path))
    monkeypatch.setenv("PRAGMA_MEASUREMENTS", str(tmp_path))
    monkeypatch.setattr(ruling, "static_rules", lambda _request: ())


def judged(problem: str, source: str, zygote: Zygote, host: HostReport) -> Evaluation:
    return evaluate(EvaluationRequest(problem, source, tier=Tier.QUICK, profile=False), zygote=zygote, host=host)


def test_an_output_that_is_never_written_is_faster_than_memory(zygote: Zygote, host: HostReport) -> None:
    found = judged(PADDED, UNTOUCHED, zygote, host)
    assert found.verdict is Verdict.REJECTED, found.detail
    assert found.rejections[0].rule == "under the floor", found.rejections
    assert found.correctness.trials == found.correctness.passed > 0, "what is read from it is right"
    assert found.environment["floor"]["compulsory_bytes"] >= 1 << 25


def test_a_sum_over_a_products_rows_without_the_product_is_correct_and_marked(zygote: Zygote, host: HostReport) -> None:
    found = judged(ROWS_OF_A_PRODUCT, SUMMED_FIRST, zygote, host)
    assert found.verdict is Verdict.CORRECT, found.detail
    assert found.speedup is not None and found.speedup > 1
    (row,) = (row for row in found.robustness if row.name == ALGEBRA)
    assert row.holds and "checked again" in row.detail.lower()
    again = [trial for trial in found.correctness.details if trial.name.startswith("again, ")]
    assert len(again) > 5 and all(trial.passed for trial in again)
