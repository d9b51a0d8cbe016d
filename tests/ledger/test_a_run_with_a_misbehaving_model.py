"""A whole run whose model's server is busy, broken, silent, endless or talkative: it ends honestly and keeps its best.

Each says the key it was called with wherever it can say anything; nothing that is stored, sent, logged or shown holds it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from apps.agents.gateway import asking
from apps.hosts.models import Device
from apps.ledger.models import Call, Outcome
from apps.people.models import Person
from apps.runs.models import Event, Problem, Run, RunState
from tests.agents_models.server import ECHO, Reply, Request
from tests.agents_models.world import answer, counsel, in_turn, is_conductor
from tests.ledger.conftest import MakeModel
from tests.ledger.world import assert_no_key, everything_kept, ordered, work

pytestmark = [pytest.mark.django_db(transaction=True)]

TOLD = f"your key is {ECHO}, Authorization: Bearer {ECHO}"
ERROR = json.dumps({"error": {"message": TOLD, "type": "x", "code": "y"}})
HALF = f"Plan: half of it, {ECHO}.\n\n```python\nimport torch # {ECHO}\nclass ModelNew(torch.nn.Module):\n    def "

# What the server does from the second question to the Coder on, and what the run's page then says of a candidate.
ALWAYS = {
    "429": (Reply(body=ERROR, misbehaviour="429", retry_after="0"), "takes no more questions for the moment"),
    "429 for an hour": (Reply(body=ERROR, misbehaviour="429", retry_after="3600"), "asks to wait 3600 s"),
    "500": (Reply(body=ERROR, misbehaviour="500"), "failed"),
    "400": (Reply(body=ERROR, misbehaviour="400"), "in a way that can't be read"),
    "deaf": (Reply(misbehaviour="deaf"), "Time-out: nothing came"),
    "hang": (Reply(HALF, TOLD, misbehaviour="hang"), "it was cut short (Time-out: nothing came"),
    "trickle": (Reply(HALF, TOLD, misbehaviour="trickle"), "it was cut short (Time-out: the answer"),
    "cut": (Reply(HALF, TOLD, misbehaviour="cut"), "it was cut short (The stream"),
    "cut at once": (Reply(misbehaviour="cut"), "broke off"),
    "malformed": (Reply(HALF, TOLD, misbehaviour="malformed"), "it was cut short"),
    "error within": (Reply(HALF, TOLD, misbehaviour="error-event", body=TOLD), "it was cut short"),
    "no stream": (Reply(misbehaviour="html"), "sent nothing that is an answer"),
    "empty": (Reply(""), "without an answer"),
    "only thoughts": (Reply("", TOLD, finish="length"), "still reasoning"),
    "refusal": (Reply("", TOLD, finish="content_filter"), "refuses to answer this"),
    "echo": (Reply(f"{TOLD}. " * 20, TOLD, piece=7), "it holds no code"),
}
# What no other question can mend: the run fails, with its best.
FATAL = {
    "401": (Reply(body=ERROR, misbehaviour="401"), "Key: "),
    "404": (Reply(body=ERROR, misbehaviour="404"), "Name: "),
    "quota": (
        Reply(body=ERROR.replace('"y"', '"insufficient_quota"'), misbehaviour="429", retry_after="0"),
        "Quota: the account",
    ),
}


@pytest.fixture(autouse=True)
def fewer_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_FIRST_PAUSE", 0.02)


def after_a_good_one(reply: Reply) -> Callable[[Request], Reply]:
    return in_turn([answer("correct 1.8"), reply])


def a_run(make_model: MakeModel, problem: Problem, person: Person, **columns: Any) -> Run:
    make_model(**{"silence_seconds": 1, "call_seconds": 2} | columns)
    return work(ordered(problem, person, iterations=4))


def reasons(run: Run) -> list[str]:
    dropped = Event.objects.filter(run=run, kind="candidate_dropped").order_by("seq")
    return [str(one.data["reason"]) for one in dropped]


@pytest.mark.parametrize("how", ALWAYS)
def test_what_never_answers_well_costs_candidates_and_no_more(
    server: Any, make_model: MakeModel, problem: Problem, device: Device, person: Person, admin: Person, client: Client,
    messages: list[object], caplog: pytest.LogCaptureFixture, how: str,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    reply, words = ALWAYS[how]
    server.script.play_by(after_a_good_one(reply))
    run = a_run(make_model, problem, person)

    assert run.state == RunState.FINISHED, run.reason
    assert run.result is not None and "judged: correct 1.8" in run.result.source
    assert "The coder has written nothing new in 2 iterations" in run.reason
    assert len(reasons(run)) == 2 and all(words in reason for reason in reasons(run)), reasons(run)
    assert not Call.objects.filter(run=run.pk, outcome=Outcome.OPEN).exists()
    client.force_login(admin)
    assert_no_key(everything_kept(run, Call.objects.filter(run=run.pk)[0].model, client, messages, caplog.text))


@pytest.mark.parametrize("how", FATAL)
def test_what_nobody_but_an_admin_can_mend_fails_the_run_with_its_best(
    server: Any, make_model: MakeModel, problem: Problem, device: Device, person: Person, admin: Person, client: Client,
    messages: list[object], caplog: pytest.LogCaptureFixture, how: str,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    reply, words = FATAL[how]
    server.script.play_by(after_a_good_one(reply))
    run = a_run(make_model, problem, person)

    assert run.state == RunState.FAILED
    assert words in run.reason
    assert run.result is not None and "judged: correct 1.8" in run.result.source
    assert run.speedup == pytest.approx(1.8)
    client.force_login(admin)
    assert_no_key(everything_kept(run, Call.objects.filter(run=run.pk)[0].model, client, messages, caplog.text))


def test_everything_that_passes_is_waited_for_and_paid_for_once(
    server: Any, make_model: MakeModel, problem: Problem, device: Device, person: Person, admin: Person, client: Client,
    messages: list[object], caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """One run that meets all of it, the Conductor too, and finds the best all the same."""
    caplog.set_level(logging.DEBUG)
    passing = [ALWAYS[how][0] for how in ("429", "500", "deaf", "cut at once", "no stream")]
    spoilt = [ALWAYS[how][0] for how in ("hang", "echo")]
    uncounted = replace(answer("correct 2.6"), counts=None)
    coder = iter(
        [*passing[:3], answer("correct 1.8"), spoilt[0], answer("correct 2.1"), *passing[3:], spoilt[1], uncounted]
    )
    conductor = iter([*passing[:2], counsel(), *spoilt, counsel(), counsel()])
    server.script.play_by(lambda request: next(conductor if is_conductor(request) else coder))
    make_model(silence_seconds=3, call_seconds=6)
    run = work(ordered(problem, person, iterations=3))

    assert run.state == RunState.FINISHED and run.reason.startswith("All 3 iterations are done."), run.reason
    assert run.result is not None and "judged: correct 2.6" in run.result.source
    assert reasons(run) == []
    calls = list(Call.objects.filter(run=run.pk))
    assert len(calls) == len(server.script.requests)
    assert sum((one.cost_usd or Decimal(0) for one in calls), Decimal(0)) == pytest.approx(
        run.cost_usd, abs=Decimal("1e-5")
    )
    assert run.cost_estimated and not run.cost_unknown
    client.force_login(admin)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert "≈ $" in page
    assert_no_key(everything_kept(run, calls[0].model, client, messages, caplog.text))
