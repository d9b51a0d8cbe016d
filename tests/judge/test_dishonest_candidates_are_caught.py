"""Every kind of cheating and of being wrong that the judge stands against, with the static rules switched off."""

from __future__ import annotations

import pytest

from .conftest import Judge
from .dishonest import ALL, Cheat

pytestmark = pytest.mark.judge


@pytest.mark.parametrize("cheat", ALL, ids=lambda cheat: cheat.name)
def test_it_is_caught_for_the_true_reason(cheat: Cheat, judge: Judge) -> None:
    found = judge(cheat.problem, cheat.source, policy=cheat.policy, tier=cheat.tier, deadline=cheat.deadline)
    assert found.verdict in cheat.verdicts, f"{found.verdict}: {found.detail}"
    assert cheat.because in found.detail, found.detail
    assert found.speedup is None
