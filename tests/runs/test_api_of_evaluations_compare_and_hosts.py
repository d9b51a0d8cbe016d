"""REST beyond runs: evaluations found by what came out, versions compared in numbers, hosts operated."""

from __future__ import annotations

import os
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from apps.hosts.models import Fault, Host, Job
from apps.people.models import AuditEntry
from apps.runs.models import Version
from tests.pages import factories, scenes


@pytest.fixture
def world(db: None) -> dict[str, Any]:
    """Two hosts, three problems, a run in every state."""
    return scenes.world()


@pytest.fixture
def ada(world: dict[str, Any]) -> Client:
    """An admin's browser."""
    client = Client()
    client.force_login(world["person"])
    return client


def test_evaluations_are_found_by_what_came_out(ada: Client, world: dict[str, Any]) -> None:
    done = world["done"]
    found = ada.get(f"/api/v1/evaluations/?run={done.pk}&verdict=incorrect").json()["results"]
    assert [(one["run"], one["version"], one["problem"], one["speedup"]) for one in found] == [
        (done.pk, 2, "softsign", None)
    ]
    assert "evaluation" not in found[0]
    whole = ada.get(f"/api/v1/evaluations/{found[0]['id']}/").json()
    assert whole["evaluation"]["verdict"] == "incorrect"
    page = ada.get("/api/v1/evaluations/?limit=2").json()
    assert len(page["results"]) == 2 < page["count"]
    assert "offset=2" in page["next"]
    assert ada.get("/api/v1/evaluations/?verdict=odd").json()["field"] == "verdict"


def test_two_versions_are_compared_in_numbers(ada: Client, world: dict[str, Any]) -> None:
    run = world["done"].pk
    told = ada.get(f"/api/v1/compare/?a={run}.1&b={run}.4").json()
    assert (told["problem"], told["a"]["key"], told["b"]["key"]) == ("softsign", f"{run}.1", f"{run}.4")
    metrics = {one["name"]: one for one in told["metrics"]}
    time = metrics["time"]
    assert time["change"] == pytest.approx(time["b"] / time["a"])
    assert time["change"] < 1 and time["better"] == "less" and time["beyond_noise"] is True
    assert told["diff"].startswith(f"--- run {run} v1\n+++ run {run} v4\n")
    reference = ada.get(f"/api/v1/compare/?b={run}.4").json()
    assert (reference["a"]["key"], reference["a"]["speedup"]) == ("reference", None)
    parent = ada.get(f"/api/v1/compare/?b={run}.4&against=parent").json()
    assert parent["a"]["key"] == f"{run}.3"
    assert {"name": "compiler", "left": "g++ 12.2.0", "right": "g++ 12.2.0", "differs": False} in parent["environment"]
    assert reference["environment"] == []
    accepted = ada.get(f"/api/v1/compare/?b={run}.4&against=accepted")
    assert (accepted.status_code, accepted.json()["field"]) == (400, "against")  # none is


@pytest.mark.parametrize(
    ("query", "field"), [("", "b"), ("b=9999.1", "b"), ("b={run}.4&a=1.x", "a"), ("b={run}.4&against=me", "against")]
)
def test_what_can_not_be_compared_says_which_side(ada: Client, world: dict[str, Any], query: str, field: str) -> None:
    answer = ada.get(f"/api/v1/compare/?{query.format(run=world['done'].pk)}")
    assert answer.status_code == 400
    assert answer.json()["field"] == field


def test_several_versions_are_compared_with_the_first(ada: Client, world: dict[str, Any]) -> None:
    run, live = world["done"].pk, world["live"].pk
    told = ada.get(f"/api/v1/compare/versions/?v={run}.1,{run}.2&v={run}.4&v={live}.4").json()
    assert told["problem"] == "softsign"
    assert [one["key"] for one in told["versions"]] == [f"{run}.1", f"{run}.2", f"{run}.4", f"{live}.4"]
    assert told["versions"][0]["against_first"] == "" != told["versions"][2]["against_first"]
    pair = ada.get(f"/api/v1/compare/?a={run}.1&b={run}.4").json()
    time, two = (next(one for one in many["metrics"] if one["name"] == "time") for many in (told, pair))
    assert (time["unit"], time["better"]) == (two["unit"], two["better"])
    assert time["values"][0] == {"value": two["a"], "change": None, "beyond_noise": None}
    assert time["values"][2] == {"value": two["b"], "change": two["change"], "beyond_noise": two["beyond_noise"]}
    assert all(len(one["values"]) == 4 for one in told["metrics"] + told["environment"])


@pytest.mark.parametrize("query", ["", "v={run}.1", "v={run}.1,{run}.99", "v={run}.1&v=x", "many"])
def test_several_that_can_not_be_compared_are_refused(ada: Client, world: dict[str, Any], query: str) -> None:
    run = world["done"].pk
    many = "v=" + ",".join(f"{run}.{number}" for number in range(1, 14))
    answer = ada.get(f"/api/v1/compare/versions/?{many if query == 'many' else query.format(run=run)}")
    assert (answer.status_code, answer.json().get("field")) == (400, "v")


def test_versions_of_different_problems_are_not_compared(ada: Client, world: dict[str, Any]) -> None:
    done = world["done"]
    sizing = factories.SizingFactory.create(problem__slug="another", problem__source="another = 1")
    run = factories.RunFactory.create(state="finished", sizing=sizing, device=done.device, owner=done.owner)
    other = Version.objects.create(run=run, number=1, iteration=1, source="x")
    answer = ada.get(f"/api/v1/compare/versions/?v={done.pk}.1,{other.run_id}.1")
    assert f"{other.run_id}.1 solves another problem than {done.pk}.1" in answer.json()["message"]


def test_tags_and_notes_are_written_and_found(ada: Client, world: dict[str, Any]) -> None:
    address = f"/api/v1/runs/{world['done'].pk}/"
    told = ada.patch(address, {"tags": ["Wide", "baseline"], "notes": "why"}, content_type="application/json").json()
    assert (told["tags"], told["notes"]) == (["wide", "baseline"], "why")
    told = ada.patch(address, {"notes": ""}, content_type="application/json").json()
    assert (told["tags"], told["notes"]) == (["wide", "baseline"], "")
    found = ada.get("/api/v1/runs/?tag=wide").json()["results"]
    assert [one["id"] for one in found] == [world["done"].pk]
    refused = ada.patch(address, {"tags": ["<b>"]}, content_type="application/json")
    assert (refused.status_code, refused.json()["field"]) == (400, "tags")


def test_a_host_is_drained_enabled_and_looked_into(ada: Client, world: dict[str, Any]) -> None:
    name = world["device"].host.name
    assert ada.post(f"/api/v1/hosts/{name}/drain/").json()["enabled"] is False
    assert ada.post(f"/api/v1/hosts/{name}/enable/").json()["enabled"] is True
    kinds = [entry.kind for entry in AuditEntry.objects.filter(about=f"host {name}").order_by("pk")]
    assert kinds == ["host.drained", "host.enabled"]
    states = [job["state"] for job in ada.get(f"/api/v1/hosts/{name}/queue/").json()]
    assert states == ["running", "waiting"]
    allowed = ada.post(f"/api/v1/hosts/{name}/isolation/", {"allowed": True}, content_type="application/json").json()
    assert allowed["weak_isolation_allowed"] is True
    assert Host.objects.get(name=name).weak_isolation_allowed_by == world["person"]
    ada.post(f"/api/v1/hosts/{name}/measure/")
    assert Job.objects.filter(kind="measure", owner=world["person"]).exists()
    assert ada.get("/api/v1/hosts/epyc-02/faults/").json()["results"][0]["what"] == Fault.objects.get().what
    assert ada.post("/api/v1/hosts/nowhere/drain/").status_code == 404


def test_whoever_sends_nothing_is_told_what_to_send(db: None) -> None:
    answer = Client().get("/api/v1/evaluations/")
    assert answer.status_code == 401
    assert "Authorization: Bearer" in answer.json()["message"]


def test_the_description_names_every_route_and_both_ways_in(ada: Client) -> None:
    schema = ada.get("/api/schema/?format=json").json()
    for address in ("/api/v1/evaluations/{id}/", "/api/v1/compare/",
                    "/api/v1/compare/versions/", "/api/v1/runs/estimate/", "/api/v1/hosts/{name}/drain/", "/api/v1/audit/",
                    "/api/v1/tokens/", "/api/v1/notices/", "/api/v1/runs/{id}/events/"):  # fmt: skip
        assert address in schema["paths"]
    assert schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert Client().get("/api/schema/").status_code == 401


def test_the_description_can_be_made_without_a_doubt() -> None:
    """A warning means that some answer is described as something it is not."""
    call_command("spectacular", validate=True, fail_on_warn=True, file=os.devnull)
