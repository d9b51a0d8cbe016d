"""No false alarm: every usual style of an honest candidate is found correct and gets a speed-up."""

from __future__ import annotations

import pytest

from .conftest import Judge
from .honest import ALL, Honest

pytestmark = pytest.mark.judge


@pytest.mark.parametrize("honest", ALL, ids=lambda honest: honest.name)
def test_it_is_correct(honest: Honest, judge: Judge) -> None:
    found = judge(honest.problem, honest.source, policy=honest.policy)
    assert found.verdict.value == "correct", f"{found.detail} {found.rejections}"
    assert found.correctness.trials == found.correctness.passed > 0
    assert found.speedup is not None and found.speedup > 0
    assert found.timing.outcome is None, "quick calls nothing faster"
