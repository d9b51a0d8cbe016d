"""A run whose coder is a model, as the agents worker does it: the best is kept, every call accounted for, no key anywhere."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from apps.agents.gateway.purse import Largest
from apps.hosts.models import Device
from apps.ledger import spending
from apps.ledger.models import Call, LanguageModel, Limits, Outcome
from apps.people.models import Person
from apps.runs import beat, steering, tasks
from apps.runs.events import ClaimLost
from apps.runs.journal import RunJournal
from apps.runs.models import Draft, Event, Problem, Run, RunState, Version
from apps.runs.recorder import Recorder
from apps.runs.spending import RunPurse
from tests.agents_models.clock import Clock
from tests.agents_models.conftest import KEY
from tests.agents_models.server import ECHO, Reply
from tests.agents_models.world import answer, in_turn, is_conductor
from tests.ledger.conftest import MakeModel
from tests.ledger.world import (
    CHATTER,
    assert_no_key,
    by_what_is_asked,
    everything_kept,
    judge,
    ordered,
    text_of,
    work,
)
from tests.patience import PATIENCE, until
from tests.runs.scripted import silence, stays_paused, take
from tests.runs.station import Station

pytestmark = [pytest.mark.django_db(transaction=True)]
EVERYTHING = [
    answer("correct 1.8"),
    answer("build_failed"),  # repaired
    answer("correct 2.0"),
    answer("rejected"),  # a cheat, and its repairs are one too
    answer("rejected", "// another"),
    answer("rejected", "// a third"),
    CHATTER,  # sent back, then well
    answer("correct 2.6"),
    answer("incorrect"),
    answer("correct 1.2"),
]


def test_the_best_is_kept_and_the_key_is_nowhere(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person, admin: Person, client: Client,
    messages: list[object], caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    caplog.set_level(logging.DEBUG)
    server.script.play_by(in_turn(EVERYTHING))
    run = work(ordered(problem, person, iterations=5))

    assert run.state == RunState.FINISHED, run.reason
    assert run.result is not None and "judged: correct 2.6" in run.result.source
    assert run.speedup == pytest.approx(2.6)
    verdicts = [version.measurement and version.measurement.verdict for version in Version.objects.filter(run=run)]
    assert {"correct", "build_failed", "rejected"} <= set(verdicts)
    assert {version.author for version in Version.objects.filter(run=run)} == {"scripted"}
    assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in server.script.requests)
    reading = Call.objects.get(run=run.pk, agent="verifier")  # of the wrong answer: paid for as any call
    assert (reading.step, reading.tokens_in, reading.tokens_out) == ("5.0.diagnose.0", 100, 50)
    said = run.events.get(kind="step_ended", step=reading.step)
    assert (said.agent, "The last block is not masked." in said.text) == ("verifier", True)

    client.force_login(admin)
    kept = everything_kept(run, model, client, messages, caplog.text)
    assert "glad to help" in kept  # what the model said is there
    assert_no_key(kept)


def test_every_call_has_its_place_its_tokens_and_its_price(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person
) -> None:
    busy = Reply("wait", misbehaviour="429", retry_after="0")
    server.script.play_by(
        in_turn([busy, CHATTER, answer("build_failed"), answer("correct 2.0"), answer("correct 2.4")])
    )
    run = work(ordered(problem, person, iterations=2, temperatures=(0.1, 0.9)))

    calls = list(Call.objects.filter(run=run.pk))
    assert len(calls) == len(server.script.requests)
    assert [(one.agent, one.step, one.number, one.retries, one.outcome) for one in calls[:4]] == [
        ("coder", "1.0.write.0", 1, 0, Outcome.FAILED),
        ("coder", "1.0.write.0", 2, 1, Outcome.ANSWERED),
        ("coder", "1.0.write.0", 3, 0, Outcome.ANSWERED),
        ("coder", "1.0.repair.1", 1, 0, Outcome.ANSWERED),
    ]
    assert calls[0].fault == "busy"
    assert {one.agent for one in calls} == {"coder", "conductor"}
    paid = [one for one in calls if one.outcome == Outcome.ANSWERED]
    assert all((one.tokens_in, one.tokens_out, one.cost_usd) == (100, 50, Decimal("0.0007")) for one in paid)
    assert {one.person for one in calls} == {person}
    assert float(run.cost_usd) == pytest.approx(0.0007 * len(paid))
    assert (run.tokens_in, run.tokens_out) == (100 * len(paid), 50 * len(paid))
    assert spending.of_run(run.pk).usd == run.cost_usd
    ended = Event.objects.filter(run=run, kind="step_ended", agent="coder").first()
    assert ended is not None and ended.data["usage"]["cost_usd"] == pytest.approx(0.0014)
    temperatures = [one.body["temperature"] for one in server.script.requests if not is_conductor(one)]
    assert temperatures[:4] == [0.1, 0.1, 0.1, 0.1]


def test_candidates_of_an_iteration_have_a_temperature_each(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person
) -> None:
    server.script.play_by(by_what_is_asked)
    work(ordered(problem, person, iterations=1, candidates=2, temperatures=(0.1, 0.9)))
    coder = [one.body["temperature"] for one in server.script.requests if not is_conductor(one)]
    assert sorted(coder[:2]) == [0.1, 0.9]  # asked at the same time, so either may come first


def test_a_limit_ends_the_run_with_its_best_and_says_whose(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person
) -> None:
    LanguageModel.objects.update(answer_tokens=400)
    server.script.play_by(by_what_is_asked)
    run = work(ordered(problem, person, iterations=9, tokens=4500))
    assert run.state == RunState.FINISHED
    assert re.match(
        r"The run's limit of 4,500 tokens leaves \d,\d{3}, and this call of scripted could take", run.reason
    )
    assert run.result is not None
    Limits.objects.update(person_month_usd=Decimal("0.01"))  # less than one call's largest cost
    poor = work(ordered(problem, person, iterations=9))
    assert "Ada Moss's limit for" in poor.reason
    assert not Call.objects.filter(run=poor.pk).exists()


def test_a_price_nobody_knows_is_shown_as_unknown(
    server: Any, make_model: MakeModel, problem: Problem, device: Device, person: Person, signed_in: Client
) -> None:
    make_model(usd_per_million_in=None, usd_per_million_out=None)
    server.script.play_by(lambda request: answer("correct 1.5"))
    run = work(ordered(problem, person, iterations=1))
    assert run.cost_unknown
    assert "unknown · " in signed_in.get("/").content.decode()
    assert "unknown" in signed_in.get(f"/runs/{run.pk}/calls/").content.decode()


def test_a_server_that_counts_nothing_is_said_to_be_estimated(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person, signed_in: Client
) -> None:
    whole = answer("correct 1.5")
    server.script.play_by(lambda request: Reply(whole.text, counts=None))
    run = work(ordered(problem, person, iterations=1))
    assert run.cost_estimated
    assert "≈ $" in signed_in.get("/").content.decode()
    assert Call.objects.filter(run=run.pk, estimated=True).exists()


@pytest.mark.parametrize(
    ("columns", "says"),
    [({"enabled": False}, "is switched off"), ({"key_sealed": "broken"}, "under another PRAGMA_KEY")],
)
def test_a_model_that_can_not_be_used_when_the_run_begins_fails_it_in_words(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person, columns: dict[str, Any], says: str
) -> None:  # fmt: skip
    run = ordered(problem, person)
    LanguageModel.objects.update(**columns)
    work(run)
    assert run.state == RunState.FAILED
    assert says in run.reason
    assert server.script.requests == []


def in_background(run: Run) -> threading.Thread:
    def work() -> None:
        try:
            tasks.work_on_run(run.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_stop_in_the_browser_ends_the_call_and_keeps_what_it_said(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person, signed_in: Client,
    clock_of_calls: Clock,
) -> None:  # fmt: skip
    clock_of_calls.stopped = True
    first = iter([answer("correct 1.8")])
    slow = Reply(f"Let me think about {ECHO} tiles of rows, ", misbehaviour="trickle")
    server.script.play_by(lambda request: by_what_is_asked(request) if is_conductor(request) else next(first, slow))
    run = ordered(problem, person, iterations=5)
    with Station(judge):
        working = in_background(run)
        draft = until(lambda: Draft.objects.filter(run=run, agent="coder", text__contains="tiles of rows").first())
        assert KEY not in draft.text
        assert Call.objects.get(run=run.pk, outcome=Outcome.OPEN).counted_usd > 0
        assert signed_in.post(f"/runs/{run.pk}/order/", {"do": "stop"}).status_code in (200, 302)
        until(lambda: server.script.gone)  # the server would have gone on
        working.join(PATIENCE)
    run.refresh_from_db()
    assert run.state == RunState.STOPPED
    assert run.result is not None
    call = Call.objects.filter(run=run.pk).order_by("-pk")[0]
    assert (call.outcome, call.estimated) == (Outcome.STOPPED, True)
    assert call.cost_usd is not None and call.cost_usd > 0
    assert any("tiles of rows" in str(event.data) for event in Event.objects.filter(run=run, kind="step_ended"))


def test_a_pause_lets_the_call_end_and_then_waits(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    wait_a_while = stays_paused(monkeypatch)
    asked, going = threading.Event(), threading.Event()

    def reply(request: Any) -> Reply:
        if not is_conductor(request) and not asked.is_set():
            asked.set()
            going.wait(PATIENCE)
        return by_what_is_asked(request)

    server.script.play_by(reply)
    run = ordered(problem, person, iterations=1)
    with Station(judge):
        working = in_background(run)
        assert asked.wait(PATIENCE)
        steering.pause(run, person)
        going.set()
        until(lambda: Version.objects.filter(run=run).exists())
        wait_a_while()
        assert len(server.script.requests) == 1
        assert Run.objects.get(pk=run.pk).state == RunState.PAUSED
        steering.resume(run, person)
        working.join(PATIENCE)
    run.refresh_from_db()
    assert run.state == RunState.FINISHED


def test_a_worker_that_lost_its_run_sets_nothing_aside_and_frees_nothing(
    model: LanguageModel, make_run: Callable[..., Run]
) -> None:
    run = make_run(coder="scripted")
    stalled = take(run)
    silence(run)
    heir = take(run)
    with beat.beat.holding(stalled) as old, beat.beat.holding(heir) as new:
        journal = RunJournal(new, Recorder(heir, run.device_id))
        kept = RunPurse(new, model, journal).reserve("openai/scripted", "write 1.0", Largest(0.3))
        with pytest.raises(ClaimLost):
            RunPurse(old, model, journal).reserve("openai/scripted", "write 1.0", Largest(0.3))
    assert list(Call.objects.values_list("pk", "outcome")) == [(int(kept), Outcome.OPEN)]


def test_an_answer_paid_for_twice_since_its_worker_died_is_on_the_runs_bill_twice(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person, signed_in: Client,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Dead between the answer's arrival and its journalling: list, REST and export say what the ledger says."""
    server.script.play_by(by_what_is_asked)
    run = ordered(problem, person, iterations=2)
    commit = RunJournal._commit

    def dies(journal: RunJournal, entry: Any, facts: Any) -> None:
        if entry.key == "2.0.write.0":
            raise ClaimLost(run.pk)
        commit(journal, entry, facts)

    with monkeypatch.context() as dying:
        dying.setattr(RunJournal, "_commit", dies)
        work(run)
    assert run.is_live
    before = spending.of_run(run.pk)
    assert (run.tokens_in, run.cost_usd) == (before.tokens_in, before.usd)  # while it is live, too
    silence(run)
    work(run)

    assert run.state == RunState.FINISHED, run.reason
    assert Call.objects.filter(run=run.pk, step="2.0.write.0", outcome=Outcome.ANSWERED).count() == 2
    bill = spending.of_run(run.pk)
    assert (run.tokens_in, run.tokens_out, run.cost_usd) == (bill.tokens_in, bill.tokens_out, bill.usd)
    assert not run.cost_unknown
    told = signed_in.get(f"/api/v1/runs/{run.pk}/").json()
    assert (told["tokens_in"], told["tokens_out"]) == (bill.tokens_in, bill.tokens_out)
    assert Decimal(str(told["cost_usd"])) == bill.usd
    listed = signed_in.get("/runs.csv")
    assert f",{run.tokens_in},{run.tokens_out},{run.cost_usd}," in text_of(listed)
