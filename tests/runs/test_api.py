"""REST: what a script sees and does, and how errors read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.hosts.models import Device, Host, Job
from apps.people.models import Person
from apps.runs import events
from apps.runs.events import Entry
from apps.runs.models import Problem, Run, RunState, Sizing
from tests.conftest import SOFTSIGN

pytestmark = pytest.mark.django_db
MakeRun = Callable[..., Run]


def post(client: Client, address: str, **body: Any) -> Any:
    return client.post(f"/api/v1/{address}", body, content_type="application/json")


def test_nobody_unknown_sees_anything(client: Client) -> None:
    for address in ["runs/", "problems/", "hosts/", "runs/1/events/"]:
        answer = client.get(f"/api/v1/{address}")
        assert answer.status_code == 401
        assert "Sign in" in answer.json()["message"]


def test_a_disabled_person_sees_nothing_more(signed_in: Client, person: Person) -> None:
    assert signed_in.get("/api/v1/runs/").status_code == 200
    person.is_active = False
    person.save()
    assert signed_in.get("/api/v1/runs/").status_code == 401


def test_launching_a_run_with_its_twin(signed_in: Client, problem: Problem, device: Device) -> None:
    answer = post(signed_in, "runs/", problem="soft-sign", device="here/cpu", iterations=4, twins=True)
    assert answer.status_code == 201, answer.content
    run = answer.json()
    assert (run["state"], run["iterations"], run["profile"], run["owner"]) == ("queued", 4, True, "Ada Moss")
    twin = signed_in.get(f"/api/v1/runs/{run['twin']}/").json()
    assert (twin["profile"], twin["iterations"]) == (False, 4)
    page = signed_in.get(f"/api/v1/runs/{run['id']}/events/").json()
    assert [event["kind"] for event in page["events"]] == ["launched"]
    assert page["events"][0]["data"]["twin"] == twin["id"]


@pytest.mark.parametrize(
    ("changes", "field", "says"),
    [
        ({"language": "fortran"}, "language", "It knows cpp, cuda, triton"),
        ({"language": "cuda"}, "language", "can't judge cuda"),
        ({"policy": "any"}, "policy", "Choose one of kernel, library"),
        ({"device": "there/cpu"}, "device", "Devices: here/cpu"),
        ({"iterations": 0}, "iterations", "between 1 and 200"),
        ({"candidates": 99}, "candidates", "between 1 and 8"),
        ({"seconds": -1}, "seconds", "more than 0"),
        ({"goal": 0.5}, "goal", "more than 1"),
        ({"coder": "gpt-7"}, "coder", "builtin"),
        ({"overrides": {"ROWS": 3}}, "overrides", "BATCH"),
        ({"overrides": {"BATCH": "many"}}, "overrides", "whole number"),
        ({"problem": "nothing"}, "problem", "nothing"),
        ({"twins": True, "profile": False}, "profile", "leave it on"),
    ],
)
def test_an_order_that_can_not_be_is_refused_and_creates_nothing(
    signed_in: Client, problem: Problem, device: Device, changes: dict[str, Any], field: str, says: str
) -> None:
    answer = post(signed_in, "runs/", **{"problem": "soft-sign", "device": "here/cpu", **changes})
    assert answer.status_code == 400
    complaint = answer.json()
    assert complaint["field"] == field
    assert says in complaint["message"]
    assert field in complaint["errors"]
    assert not Run.objects.exists()
    assert Sizing.objects.count() == 1


def test_hosts_that_are_away_drained_or_weak_take_no_run(signed_in: Client, problem: Problem, device: Device) -> None:
    def refused() -> str:
        answer = post(signed_in, "runs/", problem="soft-sign", device="here/cpu")
        assert answer.status_code == 400
        assert not Run.objects.exists()
        return str(answer.json()["message"])

    report = dict(device.host.report)
    Host.objects.update(report={**report, "isolation_level": "weak"})
    assert "an admin can allow it" in refused()
    Host.objects.update(enabled=False)
    assert "drained" in refused()
    Host.objects.update(seen_at=None)
    assert "offline" in refused()


def test_other_sizes_are_looked_at_before_they_can_be_launched(
    signed_in: Client, problem: Problem, device: Device
) -> None:
    order = {"problem": "soft-sign", "device": "here/cpu", "overrides": {"BATCH": 32}}
    answer = post(signed_in, "runs/", **order)
    assert answer.status_code == 400
    assert "still being looked at" in answer.json()["message"]
    known = post(signed_in, "problems/soft-sign/sizings/", overrides={"BATCH": 32}).json()
    assert (known["state"], known["overrides"]) == ("checking", {"BATCH": 32})
    assert Job.objects.get().request["overrides"] == {"BATCH": 32}
    Sizing.objects.filter(pk=known["id"]).update(state="refused", refusal="It needs 200 GB; this host has 8.")
    assert "200 GB" in post(signed_in, "runs/", **order).json()["message"]
    assert not Run.objects.exists()


def test_sizes_written_out_as_they_are_make_no_other_sizing(signed_in: Client, problem: Problem) -> None:
    known = post(signed_in, "problems/soft-sign/sizings/", overrides={"BATCH": 16, "DIM": 4096}).json()
    assert (known["state"], known["overrides"]) == ("ready", {})


def test_taking_a_problem_in(signed_in: Client, device: Device) -> None:
    source = SOFTSIGN.replace("Soft-sign over", "Soft-sign once more, over")
    answer = post(signed_in, "problems/", source=source)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert (made["title"], made["origin"]) == ("Soft-sign once more, over a batch", "pasted")
    assert made["sizings"][0]["state"] == "checking"
    again = post(signed_in, "problems/", source=source)
    assert again.json()["slug"] == made["slug"]
    assert Problem.objects.count() == Job.objects.count() == 1


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("x = (", "Syntax error in line 1"),
        ("x = 1", "There is no class Model"),
        (SOFTSIGN.replace("def get_inputs", "def inputs"), "There is no get_inputs()"),
        ("\x00", "Null"),
        ("", "blank"),
    ],
)
def test_a_source_that_is_no_problem_is_refused(signed_in: Client, source: str, says: str) -> None:
    answer = post(signed_in, "problems/", source=source)
    assert answer.status_code == 400
    assert says in answer.json()["message"]
    assert answer.json()["field"] == "source"
    assert not Problem.objects.exists()


def test_steering_a_run(signed_in: Client, make_run: MakeRun) -> None:
    run = make_run()
    assert "has not begun" in post(signed_in, f"runs/{run.pk}/pause/").json()["message"]
    Run.objects.update(state=RunState.RUNNING)
    assert post(signed_in, f"runs/{run.pk}/pause/").json()["state"] == "paused"
    assert post(signed_in, f"runs/{run.pk}/pause/").status_code == 409
    assert post(signed_in, f"runs/{run.pk}/hint/", text=" try tiles ").status_code == 200
    assert post(signed_in, f"runs/{run.pk}/hint/", text=" ").json()["field"] == "text"
    assert post(signed_in, f"runs/{run.pk}/limits/", iterations=7).json()["iterations"] == 7
    assert post(signed_in, f"runs/{run.pk}/limits/", iterations=0).json()["field"] == "iterations"
    assert post(signed_in, f"runs/{run.pk}/resume/").json()["state"] == "running"
    assert post(signed_in, f"runs/{run.pk}/stop/").json()["state"] == "stopping"
    assert "being stopped already" in post(signed_in, f"runs/{run.pk}/stop/").json()["message"]
    assert post(signed_in, f"runs/{run.pk}/stop/", at_once=True).status_code == 200
    assert post(signed_in, f"runs/{run.pk}/hint/", text="too late").status_code == 409
    kinds = [event["kind"] for event in signed_in.get(f"/api/v1/runs/{run.pk}/events/").json()["events"]]
    assert kinds == ["pause_asked", "hint_given", "limits_changed", "resumed", "stop_asked", "stop_asked"]
    Run.objects.update(state=RunState.FINISHED)
    assert "has ended" in post(signed_in, f"runs/{run.pk}/stop/").json()["message"]


def test_events_come_after_the_number_one_has(signed_in: Client, make_run: MakeRun) -> None:
    run = make_run()
    events.append(run.pk, [Entry("log", f"line {n}") for n in range(1, 701)])
    first = signed_in.get(f"/api/v1/runs/{run.pk}/events/").json()
    assert (len(first["events"]), first["last_seq"]) == (500, 700)
    rest = signed_in.get(f"/api/v1/runs/{run.pk}/events/?after=500").json()["events"]
    assert [event["seq"] for event in rest] == list(range(501, 701))
    assert signed_in.get(f"/api/v1/runs/{run.pk}/events/?after=-3").json()["events"][0]["seq"] == 1


def test_runs_are_filtered(signed_in: Client, make_run: MakeRun) -> None:
    make_run(state=RunState.FINISHED)
    running = make_run(state=RunState.RUNNING)
    found = signed_in.get("/api/v1/runs/?state=running&state=paused&problem=soft-sign&host=here").json()
    assert [run["id"] for run in found["results"]] == [running.pk]
    assert signed_in.get("/api/v1/runs/?state=asleep").status_code == 400


def test_what_is_not_there_is_said_to_be_not_there(signed_in: Client) -> None:
    for address in ["runs/9/", "runs/9/events/", "runs/9/versions/", "problems/x/", "hosts/x/"]:
        answer = signed_in.get(f"/api/v1/{address}")
        assert answer.status_code == 404
        assert answer.json()["message"]
    assert signed_in.post("/api/v1/runs/", "{", content_type="application/json").status_code == 400


def test_hosts_say_whether_they_are_there(signed_in: Client, device: Device) -> None:
    found = signed_in.get("/api/v1/hosts/here/").json()
    assert (found["online"], found["devices"][0]["languages"]) == (True, ["cpp"])
    assert found["report"]["cores"] == 2


def test_the_interface_describes_itself_without_reaching_outside(signed_in: Client) -> None:
    schema = signed_in.get("/api/schema/")
    assert schema.status_code == 200
    assert b"/api/v1/runs/{id}/stop/" in schema.content
    page = signed_in.get("/api/docs/")
    assert page.status_code == 200
    assert b"https://" not in page.content
    assert b"<script>" not in page.content


def test_healthz_needs_no_session_and_tells_what_is_away(client: Client) -> None:
    answer = client.get("/healthz")
    assert answer.status_code == 200
    assert answer.json()["database"] == "ok"
