"""Launching with a model: by page, API and command; what is refused, what it is estimated to cost, what is copied."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.hosts.models import Device
from apps.ledger.models import LanguageModel, Limits
from apps.runs.models import Problem, Run, RunState
from tests.ledger.conftest import MakeModel

pytestmark = pytest.mark.django_db
MakeRun = Callable[..., Run]
FORM = {
    "how": "choose", "problem": "soft-sign", "device": "here/cpu", "language": "cpp", "policy": "library",
    "coder": "scripted", "iterations": "4", "candidates": "2", "profile": "on", "minutes": "5", "money": "1.5",
    "tokens": "90000", "temperatures": "0.2, 0.9",
}  # fmt: skip


def api(client: Client, **changes: Any) -> Any:
    body = {"problem": "soft-sign", "device": "here/cpu", "coder": "scripted", **changes}
    return client.post("/api/v1/runs/", body, content_type="application/json")


def test_a_run_is_launched_with_its_model_and_limits(
    signed_in: Client, model: LanguageModel, problem: Problem, device: Device
) -> None:
    assert signed_in.post("/launch/", FORM).status_code == 302
    run = Run.objects.get()
    assert (run.coder, run.candidates, run.tokens_limit, run.temperatures) == ("scripted", 2, 90000, [0.2, 0.9])
    assert run.money_limit_usd == Decimal("1.5")


def test_a_run_is_launched_over_rest(signed_in: Client, model: LanguageModel, problem: Problem, device: Device) -> None:
    answer = api(signed_in, tokens=5000, temperatures=[0.5])
    assert answer.status_code == 201, answer.content
    assert (answer.json()["coder"], answer.json()["tokens_limit"]) == ("scripted", 5000)
    assert [one["name"] for one in signed_in.get("/api/v1/models/").json()["results"]] == ["scripted"]


def test_its_settings_are_copied_into_the_form_and_as_a_command(
    signed_in: Client, model: LanguageModel, problem: Problem, device: Device
) -> None:
    signed_in.post("/launch/", FORM)
    page = signed_in.get(f"/launch/?copy={Run.objects.get().pk}").content.decode()
    for said in ('value="scripted" checked', 'value="90000"', 'value="1.5"', 'value="0.2, 0.9"'):
        assert said in page
    command = page.partition('id="command"')[2].partition("</pre>")[0]
    for words in ("--coder scripted", "--candidates 2", "--tokens 90000", "--money 1.5", "--minutes 5", "0.2,0.9"):
        assert words in command


@pytest.mark.parametrize(
    ("columns", "order", "field", "says"),
    [
        ({"name": "other"}, {}, "coder", "There are: builtin, other. An admin adds a model"),
        ({"enabled": False}, {}, "coder", "scripted is switched off"),
        ({}, {"language": "triton"}, "coder", "Models can't write triton yet"),
        ({}, {"tokens": 0}, "tokens", "more than 0"),
        ({}, {"temperatures": [9]}, "temperatures", "between 0 and 2"),
        ({}, {"money_usd": "0"}, "coder", "The run's limit of $0.00 is used up"),
        (
            {"usd_per_million_in": None, "usd_per_million_out": None, "listed": {}},
            {"money_usd": "3"},
            "coder",
            "the price of scripted is unknown",
        ),
    ],
)
def test_what_can_not_be_launched_says_what_to_do(
    signed_in: Client,
    make_model: MakeModel,
    problem: Problem,
    device: Device,
    columns: dict[str, Any],
    order: dict[str, Any],
    field: str,
    says: str,
) -> None:
    make_model(**columns)
    Device.objects.update(languages=["cpp", "triton"])
    answer = api(signed_in, **order)
    assert answer.status_code == 400
    assert answer.json()["field"] == field
    assert says in answer.json()["message"]
    assert not Run.objects.exists()


def test_whoever_has_spent_their_month_launches_no_model(
    signed_in: Client, model: LanguageModel, problem: Problem, device: Device
) -> None:
    Limits.objects.create(pk=1, person_month_usd=0)
    answer = api(signed_in)
    assert answer.status_code == 400
    assert "Ada Moss's limit for" in answer.json()["message"]
    assert api(signed_in, coder="builtin").status_code == 201


def estimate(client: Client, **changes: str) -> str:
    page = client.post("/launch/preview/", FORM | {"money": "", "minutes": ""} | changes).content.decode()
    return " ".join(page.partition('id="will"')[2].partition("<footer>")[0].split())


def test_an_estimate_says_whether_it_rests_on_runs_or_on_the_price(
    signed_in: Client, model: LanguageModel, problem: Problem, make_run: MakeRun
) -> None:
    # 16 calls of at most 32,000 tokens in and 32,000 out at 2 and 10 dollars a million
    first = estimate(signed_in)
    assert "up to $6.14" in first
    assert "price and context: 16 calls of at most 32,000 tokens in and 32,000 out, $0.38 each" in first
    ended = timezone.now()
    for cost in ("0.10", "0.30", "0.20"):
        make_run(
            coder="scripted", state=RunState.FINISHED, iteration=2, cost_usd=cost, tokens_out=10,
            started_at=ended - timedelta(seconds=60), finished_at=ended,
        )  # fmt: skip
    later = estimate(signed_in)
    assert "about $0.80" in later
    assert "what an iteration of 3 runs of this problem with scripted cost" in later
    assert "at most $0.50 (the limit)" in estimate(signed_in, money="0.5")
    assert "none (built-in)" in estimate(signed_in, coder="builtin")


def estimate_over_rest(client: Client, **changes: Any) -> Any:
    body = {"problem": "soft-sign", "device": "here/cpu", "coder": "scripted"} | changes
    return client.post("/api/v1/runs/estimate/", body, content_type="application/json")


def test_rest_says_what_a_launch_would_take(
    signed_in: Client, model: LanguageModel, problem: Problem, make_run: MakeRun
) -> None:
    first = estimate_over_rest(signed_in).json()
    assert (first["seconds"], first["time"], first["money"], first["limit"]) == (
        None,
        "no time limit",
        "up to $6.14",
        None,
    )
    assert first["money_usd"] == pytest.approx(6.144)
    ended = timezone.now()
    make_run(
        coder="scripted", state=RunState.FINISHED, iteration=2, cost_usd="0.20", tokens_out=10,
        started_at=ended - timedelta(seconds=60), finished_at=ended,
    )  # fmt: skip
    Limits.objects.update_or_create(pk=1, defaults={"person_month_usd": 5})
    later = estimate_over_rest(signed_in).json()
    assert (later["seconds"], later["money_usd"]) == (pytest.approx(240), pytest.approx(0.8))
    assert "1 run of this problem here" in later["time_basis"] and "1 run of this problem" in later["money_basis"]
    assert (later["limit"]["limit_usd"], later["limit"]["left_usd"]) == ("5.000000", "5.000000")
    bounded = estimate_over_rest(signed_in, seconds=120, money_usd="0.5", twins=True).json()
    assert (bounded["seconds"], bounded["money_usd"]) == (pytest.approx(240), pytest.approx(1.0))
    own = estimate_over_rest(signed_in, coder="builtin").json()
    assert (own["money_usd"], own["limit"], own["money"]) == (0, None, "none (built-in)")
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"coder": "other"}, "coder"), ({"device": "no/cpu"}, "device"), ({"iterations": 0}, "iterations")],
)
def test_rest_estimates_nothing_that_could_not_be_launched(
    signed_in: Client, model: LanguageModel, problem: Problem, device: Device, changes: dict[str, Any], field: str
) -> None:
    answer = estimate_over_rest(signed_in, **changes)
    assert (answer.status_code, answer.json()["field"]) == (400, field)


def test_a_price_nobody_knows_is_unknown_in_the_estimate(
    signed_in: Client, make_model: MakeModel, problem: Problem, device: Device
) -> None:
    make_model(usd_per_million_in=None, usd_per_million_out=None)
    assert "unknown" in estimate(signed_in)
    assert "not looked up yet: test the model" in estimate(signed_in)


def test_the_chosen_model_comes_with_its_test_button(
    signed_in: Client, model: LanguageModel, problem: Problem, device: Device
) -> None:
    assert f"/settings/models/{model.pk}/test/" in signed_in.get("/launch/?coder=scripted").content.decode()
    assert f"/settings/models/{model.pk}/test/" in signed_in.post("/launch/preview/", FORM).content.decode()
    assert "/test/" not in signed_in.get("/launch/").content.decode()


def test_the_web_process_loads_neither_litellm_nor_torch() -> None:
    code = (
        "import django, sys; django.setup(); import pragma_web.asgi, pragma_web.urls; "
        "print(sorted({'litellm', 'torch'} & set(sys.modules)))"
    )
    environment = {"DJANGO_SETTINGS_MODULE": "pragma_web.settings", "PATH": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.strip() == "[]", done.stderr
