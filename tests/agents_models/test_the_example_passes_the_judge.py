"""The example that models are shown is right and obeys every rule: what a prompt teaches must not be refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.kernels.evaluation import EvaluationRequest, Policy, Tier, Verdict
from apps.kernels.jail import Zygote
from apps.kernels.judge import evaluate

PROBLEM = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, columns, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(columns))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return [1024, 1e-5]
"""


@pytest.mark.judge
def test_the_example_of_the_house_style_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRAGMA_LOCKS", str(tmp_path))
    example = Path("apps/agents/prompts/v1/example_cpp.txt").read_text()
    request = EvaluationRequest(PROBLEM, example, policy=Policy.KERNEL, tier=Tier.QUICK, profile=False)
    with Zygote() as zygote:
        found = evaluate(request, zygote=zygote)
    assert found.verdict is Verdict.CORRECT, found.detail or found.rejections
