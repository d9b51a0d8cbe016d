"""The chart of a run: where its line of the best so far lies."""

from __future__ import annotations

import pytest

from apps.runs.models import Measurement, Run, Version
from apps.runs.presentation.charts import speedup_chart
from apps.runs.presentation.measured import Measured


def measured(number: int, speedup: float | None, tier: str = "quick") -> Measured:
    version = Version(run=Run(pk=1), number=number, pk=number)
    verdict = "correct" if speedup else "incorrect"
    return Measured(version, Measurement(version=version, speedup=speedup, verdict=verdict, tier=tier, evaluation={}))


@pytest.mark.parametrize(
    ("shown", "best", "line"),
    [
        ([2.5, 3.1, 3.8], 3, [2.5, 3.1, 3.8]),
        ([2.5, None, 2.2], 1, [2.5, 2.5, 2.5]),
        ([2.5, 3.4, 3.6], 2, [2.5, 3.4, 3.4]),
        ([None, 0.8], None, [1.0, 1.0]),
    ],
    ids=["each better", "failures and slower ones", "the leader judged lower in full", "none better than eager"],
)
def test_the_line_follows_who_led(shown: list[float | None], best: int | None, line: list[float]) -> None:
    versions = [measured(number, ratio) for number, ratio in enumerate(shown, start=1)]
    assert [point.best_so_far for point in speedup_chart(versions, None, best).points] == line
