"""What each gain of a run has cost, where people look: the run, the list, an accepted kernel."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from apps.runs.models import Run
from apps.runs.presentation.gains import cost_of_gains, gains


@pytest.mark.parametrize(
    ("ratios", "count"),
    [
        ([], 0),
        ([None, 0.8], 0),
        ([1.004], 0),  # a lead within the least margin says nothing
        ([0.9, 1.5, None, 1.4, 1.506, 3.0], 2),
    ],
)
def test_a_gain_is_a_version_that_took_the_lead(ratios: list[float | None], count: int) -> None:
    assert gains(ratios) == count


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({}, ""),
        ({"cost_usd": Decimal("0.30")}, "$0.15 for each of 2 gains"),
        ({"cost_usd": Decimal("0.30"), "cost_estimated": True}, "≈ $0.15 for each of 2 gains"),
        ({"cost_unknown": True}, "unknown for each of 2 gains"),
    ],
)
def test_it_is_told_as_far_as_it_is_known(columns: dict[str, Any], says: str) -> None:
    assert cost_of_gains(Run(**columns), [1.5, 3.0]) == says
    if columns:
        assert cost_of_gains(Run(state="finished", **columns), [0.9]) == "for no gain"


def test_it_stands_on_the_run_and_in_the_list(ada: Client, world: dict[str, Any]) -> None:
    Run.objects.filter(pk=world["done"].pk).update(coder="some-model", cost_usd=Decimal("0.90"), tokens_out=10)
    says = "$0.30 for each of 3 gains"
    assert says in ada.get(f"/runs/{world['done'].pk}/part/head/").content.decode()
    assert says in ada.get("/?columns=state,gain").content.decode()
    assert says not in ada.get("/?columns=state").content.decode()
