"""One zygote for all tests that judge; a device lock of their own, so that they don't wait for other work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apps.kernels.evaluation import Evaluation, EvaluationRequest, Policy, Tier
from apps.kernels.jail import Zygote
from apps.kernels.judge import evaluate, ruling

Judge = Callable[..., Evaluation]


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """A zygote in the strongest mode this host has."""
    with Zygote() as started:
        yield started


@pytest.fixture
def judge(zygote: Zygote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    """Judge a candidate without the static rules: what is tested here is what holds when nobody reads the source."""
    monkeypatch.setenv("PRAGMA_LOCKS", str(tmp_path))
    monkeypatch.setattr(ruling, "static_rules", lambda _request: ())

    def judged(
        problem: str,
        candidate: str,
        *,
        policy: Policy = Policy.KERNEL,
        tier: Tier = Tier.QUICK,
        deadline: float = 120.0,
    ) -> Evaluation:
        request = EvaluationRequest(
            problem, candidate, policy=policy, tier=tier, profile=False, deadline_seconds=deadline
        )
        return evaluate(request, zygote=zygote)

    return judged
