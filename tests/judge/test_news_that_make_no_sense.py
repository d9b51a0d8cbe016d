"""What a candidate writes on the judge's channel as if it were its runner is a forgery, and no fault of the judge."""

from __future__ import annotations

import json

import pytest

from apps.kernels.evaluation import EvaluationRequest
from apps.kernels.jail import Zygote
from apps.kernels.judge.checking import runner_for_checks
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.session import Session
from apps.kernels.plain import Plain

from .house import HONEST_SWISH, swish

SWISH = """import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x): return x * torch.sigmoid(x)
def get_inputs(): return [torch.randn(32, 512)]
def get_init_inputs(): return []
"""
SAY = """
import json, stat
body = json.dumps(NEWS).encode()
for fd in range(3, 40):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode): os.write(fd, len(body).to_bytes(4, "little") + bytes(1) + body)
    except OSError:
        pass
"""


@pytest.mark.judge
@pytest.mark.parametrize(
    "news",
    [
        {"stage": "warm", "buffers": [1, 2]},
        {"stage": "warm", "keys": 7},
        {"stage": "constructed", "missing": 3},
        {"stage": "observed", "operators": []},
        {"stage": "observed", "operators": {"a": 1e999}, "allocated": 0, "products": []},
    ],
    ids=json.dumps,
)
def test_news_of_another_kind_than_a_runner_s_are_a_forgery(zygote: Zygote, news: Plain) -> None:
    source = swish(HONEST_SWISH, more=SAY.replace("NEWS", f"json.loads({json.dumps(json.dumps(news))})"))
    with Session(EvaluationRequest(SWISH, source, profile=False), SWISH, zygote, lambda _progress: None) as session:
        session.oracle.draw(0)
        session.oracle.set_state()
        with pytest.raises(CandidateFailed) as failed, runner_for_checks(session, first=True):
            pass
        assert failed.value.verdict == "rejected" and failed.value.rule == "forged report"
