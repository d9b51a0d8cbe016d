"""A whole judgement as the loop asks for it: checked, timed against the reference, and its timed calls checked too."""

from __future__ import annotations

import pytest

from apps.kernels.selftest.corpus import entries

from .conftest import Judge

pytestmark = pytest.mark.judge


def test_an_honest_candidate_gets_a_speed_up_and_no_outcome(judge: Judge) -> None:
    (honest,) = entries(("honest/house_style",))
    found = judge(honest.problem_source, honest.source)
    assert found.verdict.value == "correct", f"{found.detail} {found.rejections}"
    assert found.correctness.trials == found.correctness.passed > 0
    assert found.speedup is not None and found.speedup > 0
    assert found.timing.outcome is None, "quick calls nothing faster"


def test_a_candidate_that_is_honest_only_until_it_is_timed_gets_none(judge: Judge) -> None:
    (cheat,) = entries(("two_faced/when_memory_is_guarded",))
    found = judge(cheat.problem_source, cheat.source)
    assert found.verdict.value == "incorrect" and "timed call" in found.detail
    assert found.speedup is None and found.timing.reference is None
