"""A mean over millions of numbers hardly moves when some of them are drawn anew: a kept answer is told all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.kernels.evaluation import WEAK, EvaluationRequest, Verdict
from apps.kernels.jail import Zygote
from apps.kernels.judge.proving import prove

from .house import candidate

HINGE = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x, y): return torch.clamp(1 - x * y, min=0).mean()
def get_inputs(): return [torch.randn(1024, 2048), torch.randint(0, 2, (1024, 1)).float() * 2 - 1]
def get_init_inputs(): return []
"""
C = """
extern "C" void hinge(const float* x, const float* y, float* z, int64_t m, int64_t n) {
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int64_t i = 0; i < m; ++i) for (int64_t j = 0; j < n; ++j) sum += std::max(0.0f, 1 - x[i * n + j] * y[i]);
  *z = sum / (m * n);
}
"""
COMPUTED = "z = torch.empty(())\nLIB.hinge(P(x), P(y), P(z), N(x.shape[0]), N(x.shape[1]))\n"
KEPT = "key = (float(x[0, 0]), float(x[-1, -1]))\nif key in self.kept: return self.kept[key].clone()\n"


@pytest.mark.judge
def test_a_loss_kept_by_two_elements_is_told_and_an_honest_one_is_let_alone(
    zygote: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRAGMA_MEASUREMENTS", str(tmp_path))
    kept = candidate(
        C, f"{KEPT}{COMPUTED}self.kept[key] = z\nreturn z.clone()", init="self.kept = {}", arguments="x, y"
    )
    found = prove(EvaluationRequest(HINGE, kept, profile=False), zygote=zygote).evaluation
    assert found.verdict is Verdict.INCORRECT and "one element in sixteen changed" in found.detail
    honest = candidate(C, f"{COMPUTED}return z", arguments="x, y")
    found = prove(EvaluationRequest(HINGE, honest, profile=False), zygote=zygote).evaluation
    assert found.verdict is Verdict.CORRECT, found.detail
    assert WEAK not in [row.name for row in found.robustness]
