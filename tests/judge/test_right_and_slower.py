"""A kernel that is right and does its work four times over: judged in full it is told that it is slower."""

from __future__ import annotations

import pytest

from apps.kernels.evaluation import Outcome, Tier, Verdict

from .conftest import Judge
from .house import candidate

pytestmark = pytest.mark.judge

SQUARES = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x): return x * x
def get_inputs(): return [torch.randn(256, 1024)]
def get_init_inputs(): return []
"""
FOUR_TIMES_ON_ONE_THREAD = candidate(
    """
extern "C" void squares(const float* x, volatile float* y, int64_t n) {
  for (int again = 0; again < 4; ++again) for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}""",
    "y = torch.empty_like(x)\nLIB.squares(P(x), P(y), N(x.numel()))\nreturn y",
)


def test_it_is_right_and_told_that_it_is_slower(judge: Judge) -> None:
    found = judge(SQUARES, FOUR_TIMES_ON_ONE_THREAD, tier=Tier.FULL, deadline=240)
    assert found.verdict is Verdict.CORRECT, found.detail
    assert found.timing.outcome is Outcome.SLOWER
    assert found.timing.speedup is not None and found.timing.speedup.decision_interval is not None
    assert max(found.timing.speedup.decision_interval) < 1
    assert len(found.timing.samples) >= 8, "what was measured is kept with it"
