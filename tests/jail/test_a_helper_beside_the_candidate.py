"""A candidate that leaves a helper behind is rejected even where jails share the host's process table."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.kernels.evaluation import EvaluationRequest, Tier, Verdict
from apps.kernels.jail import Zygote
from apps.kernels.judge import evaluate, ruling
from tests.judge.house import HONEST_SWISH, swish

pytestmark = pytest.mark.judge
PROBLEM = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x): return x * torch.sigmoid(x)
def get_inputs(): return [torch.randn(64, 1024)]
def get_init_inputs(): return []
"""
HELPER = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
"""


def test_an_orphan_is_found_though_it_is_nobodys_child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRAGMA_LOCKS", str(tmp_path))
    monkeypatch.setattr(ruling, "static_rules", lambda request: ())
    request = EvaluationRequest(PROBLEM, swish(HONEST_SWISH, more=HELPER), tier=Tier.QUICK, profile=False)
    with Zygote("light") as zygote:
        found = evaluate(request, zygote=zygote)
    assert found.verdict is Verdict.REJECTED
    assert "outlives the build phase" in found.detail
