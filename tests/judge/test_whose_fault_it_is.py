"""What the other side of a timing does wrong is no fault of the candidate's."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.kernels.evaluation import EvaluationRequest, Tier, Verdict
from apps.kernels.jail import Zygote
from apps.kernels.judge import ProblemRefused, compiled, evaluate, racing, ruling
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.runner import Runner
from apps.kernels.judge.windows import Window

from .house import HONEST_SWISH, swish

pytestmark = pytest.mark.judge
PROBLEM = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x): return x * torch.sigmoid(x)
def get_inputs(): return [torch.randn(256, 512)]
def get_init_inputs(): return []
"""
HONEST = swish(HONEST_SWISH)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PRAGMA_LOCKS", str(tmp_path))
    monkeypatch.setattr(ruling, "static_rules", lambda _request: ())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("raise RuntimeError('not today')", "not today"),
        ("return torch.zeros_like(x)", "wrong answer"),
    ],
)
def test_a_version_to_be_timed_against_that_fails_is_named(body: str, words: str, zygote: Zygote) -> None:
    spoiled = swish(f"{body}\n")
    request = EvaluationRequest(PROBLEM, HONEST, against=spoiled, profile=False)
    with pytest.raises(ProblemRefused, match="the version it is timed against") as refused:
        evaluate(request, zygote=zygote)
    assert words in str(refused.value)


def test_without_a_compiled_reference_that_fails_in_a_call_the_judgement_goes_on(
    zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(runner: Runner, *arguments: object, **more: object) -> Window:
        if runner.name == compiled.NAME:
            raise CandidateFailed("crashed", "a call raised:\nsomething of inductor's")
        return called(runner, *arguments, **more)  # type: ignore[arg-type]

    called = Runner.call
    monkeypatch.setattr(racing, "AIM_SECONDS", 5.0)
    monkeypatch.setattr(Runner, "call", call)
    evaluation = evaluate(EvaluationRequest(PROBLEM, HONEST, tier=Tier.FULL, profile=False), zygote=zygote)
    assert evaluation.verdict is Verdict.CORRECT and evaluation.speedup is not None
    assert evaluation.timing.compiled_reference is None
    assert any(
        "torch.compile failed on this problem: something of inductor's" in note for note in evaluation.timing.notes
    )
