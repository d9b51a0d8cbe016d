"""Twins on one chart: what is said of their difference is what the intervals bear, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.test import Client

from apps.runs.models import Run, RunState
from apps.runs.presentation import twins
from apps.runs.presentation.twins import CurvePoint, WayThere
from tests.pages import scenes


def way(name: str, ratio: float, low: float | None, high: float | None, *, ended: bool = True) -> WayThere:
    return WayThere(name, (CurvePoint("v2", "/", 2, 30.0, ratio, low, high),), 4, 60.0, ended, 4, 1)


NOTHING = WayThere("profile off", (), 4, 60.0, ended=True, tried=2, failed=2)


ON, OFF = "profile on", "profile off"
APART = "profile on the kernel is 2.00× as fast as with it off, and at least 1.86×"


@pytest.mark.parametrize(
    ("on", "off", "says"),
    [
        (way(ON, 4.0, 3.9, 4.1), way(OFF, 2.0, 1.9, 2.1), APART),
        (way(ON, 2.0, 1.9, 2.1), way(OFF, 4.0, 3.9, 4.1), "profile off the kernel is 2.00× as fast as with it on"),
        (way(ON, 2.1, 1.9, 2.3), way(OFF, 2.0, 1.8, 2.2), "can't be told apart"),
        (way(ON, 2.1, None, None), way(OFF, 2.0, 1.8, 2.2), "No interval is known"),
        (way(ON, 2.1, 2.0, 2.2), NOTHING, "in iteration 2. Profile off: no version that is faster"),
        (way(ON, 4.0, 3.9, 4.1, ended=False), way(OFF, 2.0, 1.9, 2.1), "So far. Profile on: 4.00×"),
    ],
)
def test_the_difference_is_told_as_far_as_the_intervals_go(on: WayThere, off: WayThere, says: str) -> None:
    assert says in twins.difference(on, off)


def test_neither_twin_found_anything(world: dict[str, Any]) -> None:
    told = twins.difference(replace(NOTHING, name="profile on"), NOTHING)
    assert told.count("no version that is faster than the reference") == 2


def test_both_twins_stand_on_one_chart_from_either_page(ada: Client, world: dict[str, Any]) -> None:
    done = world["done"]
    twin = scenes.twinned(done)
    for run, other in ((done, twin), (twin, done)):
        page = ada.get(f"/runs/{run.pk}/")
        shown = page.context["twins"]
        assert (shown.on, shown.off) == (done, twin)
        assert (
            f"run {done.pk} ↔ run {twin.pk}" in page.content.decode()
            and other.get_absolute_url() in page.content.decode()
        )
    on, off = shown.ways
    assert [point.version for point in on.points] == ["v1", "v3", "v4"] and [p.version for p in off.points] == [
        "v1",
        "v3",
    ]
    assert on.failed == off.failed == 1 and on.tried == 4
    seconds = [point.seconds for point in on.points]
    assert seconds == sorted(seconds) and 0 < seconds[-1] <= on.seconds
    assert "beyond" not in shown.caution and "Not both bests have been judged in full" in shown.caution


def test_a_run_without_a_twin_shows_none(ada: Client, world: dict[str, Any]) -> None:
    page = ada.get(f"/runs/{world['live'].pk}/")
    assert page.context["twins"] is None and "With the profile and without" not in page.content.decode()


def test_two_runs_that_are_no_twins_are_drawn_and_not_judged(ada: Client, world: dict[str, Any]) -> None:
    page = ada.get(f"/compare/runs/?runs={world['live'].pk},{world['done'].pk}&axis=time")
    assert page.context["twins"] is None and page.context["ways_data"]["axis"] == "time"
    assert Run.objects.filter(state=RunState.RUNNING).exists()
