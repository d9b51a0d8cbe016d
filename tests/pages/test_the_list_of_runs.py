"""The list of runs: bulk actions in one request, CSV, tags, notes, saved views."""

from __future__ import annotations

import csv
from typing import Any

import pytest
from django.test import Client

from apps.hosts import jobs
from apps.people.models import Role
from apps.runs import launch
from apps.runs.models import Run, RunState, SavedView


@pytest.fixture(autouse=True)
def no_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopping cancels nothing on a device here."""
    monkeypatch.setattr(jobs, "cancel", lambda *args, **options: None)


def said(answer: Any) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def test_several_runs_are_stopped_in_one_request_and_each_refusal_is_told(ada: Client, world: dict[str, Any]) -> None:
    live, done = world["live"], world["done"]
    queued = Run.objects.get(state=RunState.QUEUED)
    told = said(ada.post("/runs/bulk/", {"do": "stop", "run": [live.pk, queued.pk, done.pk]}, follow=True))
    numbers = ", ".join(map(str, sorted([live.pk, queued.pk])))
    assert f"Stopping, keeping the best: runs {numbers}." in told
    assert f"Not stopped: Run {done.pk} has ended (finished); there is nothing to stop." in told
    assert Run.objects.get(pk=live.pk).state == RunState.STOPPING
    assert Run.objects.get(pk=queued.pk).state == RunState.STOPPED


def test_several_runs_are_launched_again(ada: Client, world: dict[str, Any]) -> None:
    done = world["done"]
    elsewhere = Run.objects.get(device=world["other"])
    before = Run.objects.count()
    told = said(ada.post("/runs/bulk/", {"do": "again", "run": [done.pk, elsewhere.pk]}, follow=True))
    made = Run.objects.latest("id")
    assert Run.objects.count() == before + 1 and f"Launched again: run {done.pk}, now {made.pk}." in told
    assert "Not launched:" in told and "offline" in told
    assert launch.order_of(made) == launch.order_of(done)


def test_a_viewer_stops_nothing(ada: Client, world: dict[str, Any]) -> None:
    world["person"].role = Role.VIEWER
    world["person"].is_superuser = False
    world["person"].save()
    assert ada.post("/runs/bulk/", {"do": "stop", "run": [world["live"].pk]}).status_code == 403
    assert Run.objects.get(pk=world["live"].pk).state == RunState.RUNNING


def test_the_list_is_downloaded_as_it_is_filtered_and_holds_no_formula(ada: Client, world: dict[str, Any]) -> None:
    Run.objects.filter(pk=world["done"].pk).update(notes="=cmd()", cost_unknown=True)
    answer = ada.get("/runs.csv?state=finished")
    rows = list(csv.DictReader(answer.getvalue().decode().splitlines()))
    assert [row["run"] for row in rows] == [str(world["done"].pk)]
    assert rows[0]["notes"] == "'=cmd()" and rows[0]["cost"] == "unknown"
    assert float(rows[0]["speedup"]) == world["done"].speedup


def test_tags_and_notes_are_written_and_found(ada: Client, world: dict[str, Any]) -> None:
    run = world["done"]
    ada.post(f"/runs/{run.pk}/notes/", {"tags": "Baseline, wide-rows baseline", "notes": "looked at by Noor"})
    assert Run.objects.get(pk=run.pk).tags == " baseline wide-rows "
    for query in ("tag=baseline", "q=wide-rows", "q=noor+looked"):
        shown = ada.get(f"/?{query}").context["rows"]
        assert [row.run.pk for row in shown] == [run.pk], query
    assert ada.get("/?tag=base").context["rows"] == []
    told = said(ada.post(f"/runs/{run.pk}/notes/", {"tags": "<b>", "notes": ""}, follow=True))
    assert "is no tag" in told and Run.objects.get(pk=run.pk).notes == "looked at by Noor"


def test_a_list_is_saved_and_forgotten_by_its_owner_alone(ada: Client, world: dict[str, Any]) -> None:
    ada.post("/runs/views/", {"name": "mine", "back": "/?state=live&columns=state&columns=spend&page=2"})
    view = SavedView.objects.get()
    assert view.query == "state=live&columns=state&columns=spend"
    assert f'href="/?{view.query.replace("&", "&amp;")}"' in ada.get("/").content.decode()
    other = Client()
    other.force_login(world["colleague"])
    other.post("/runs/views/", {"forget": view.pk})
    assert SavedView.objects.exists() and "mine" not in other.get("/").content.decode()
    ada.post("/runs/views/", {"forget": view.pk})
    assert not SavedView.objects.exists()
