"""Several candidates of an iteration are asked for at once: as quickly, as safely and as honestly as one after the other."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from apps.agents.words import Agent
from apps.hosts.models import Device
from apps.ledger.models import Call, LanguageModel, Outcome
from apps.people.models import Person
from apps.runs import claims, steering, tasks
from apps.runs.models import Draft, Event, JournalEntry, Problem, Run, RunState, Version
from apps.runs.presentation import reasoning
from apps.runs.transcripts import exporting, importing, transcript
from tests.agents_models.clock import Clock
from tests.agents_models.server import ECHO, Reply, Request
from tests.agents_models.world import answer, counsel, is_conductor
from tests.ledger.test_a_whole_run_with_a_model import in_background
from tests.ledger.world import judge, ordered, work
from tests.patience import PATIENCE, until
from tests.runs.scripted import silence
from tests.runs.station import Station

pytestmark = [pytest.mark.django_db(transaction=True)]


class Together:
    """Answers the Coder only once so many questions are there; each by its temperature, so that slots can be told apart."""

    def __init__(self, many: int) -> None:
        self._gate = threading.Barrier(many, timeout=PATIENCE)

    def __call__(self, request: Request) -> Reply:
        if is_conductor(request):
            return counsel()
        slot = round(float(request.body["temperature"]) * 10)
        if "judged: " not in request.prompt:  # the first iteration
            self._gate.wait()
        return answer(f"correct {1 + slot / 10:.1f}", f"// {slot}")


def a_run(problem: Problem, person: Person, candidates: int, **changes: Any) -> Run:
    heat = tuple(round(0.1 * (slot + 1), 1) for slot in range(candidates))
    return ordered(problem, person, candidates=candidates, temperatures=heat, **changes)


def test_they_are_asked_for_at_the_same_time_and_gathered_in_order(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person, admin: Person
) -> None:
    server.script.play_by(Together(3))
    run = work(a_run(problem, person, 3, iterations=1))
    assert run.state == RunState.FINISHED, run.reason
    versions = Version.objects.filter(run=run).order_by("number")
    assert [(one.number, one.slot) for one in versions] == [(1, 0), (2, 1), (3, 2)]
    assert ["// " + str(slot) in one.source for slot, one in enumerate(versions, start=1)] == [True] * 3
    assert run.doing == ""
    calls = Call.objects.filter(run=run.pk, agent="coder").order_by("slot")
    assert [(one.step, one.slot, one.number, one.retries) for one in calls] == [
        (f"1.{slot}.write.0", slot, 1, 0) for slot in range(3)
    ]
    assert sorted(run.exchanges.filter(step__contains="write").values_list("step", flat=True)) == [
        f"1.{slot}.write.0" for slot in range(3)
    ]
    written = exporting.transcript_of(run)
    taken = importing.take_in(admin, transcript.written(written).encode())
    assert taken.imported["difference"] == ""


@dataclass
class Counted:
    """A model that takes `seconds` for a candidate and remembers how many it wrote at the same time at `most`.

    Its first answers wait until `together` are asked for.
    """

    seconds: float
    together: int = 1
    most: int = 0
    going: int = 0
    came: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, request: Request) -> Reply:
        if is_conductor(request):
            return counsel()
        with self.came:
            self.going += 1
            self.most = max(self.most, self.going)
            self.came.notify_all()
            self.came.wait_for(lambda: self.most >= self.together, PATIENCE)
        time.sleep(self.seconds)  # in which more could come
        with self.came:
            self.going -= 1
        return answer(f"correct {1 + float(request.body['temperature'])}")


def test_no_more_are_asked_for_at_once_than_the_model_takes(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person
) -> None:
    LanguageModel.objects.update(at_once=2)
    counted = Counted(seconds=0.4, together=2)
    server.script.play_by(counted)
    run = work(a_run(problem, person, 4, iterations=1))
    assert Version.objects.filter(run=run).count() == 4
    assert counted.most == 2


def test_each_streams_its_own_draft(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person, signed_in: Client,
    clock_of_calls: Clock,
) -> None:  # fmt: skip
    clock_of_calls.stopped = True

    def reply(request: Request) -> Reply:
        slot = round(float(request.body["temperature"]) * 10)
        return Reply(f"Candidate of warmth {slot} {ECHO} ", misbehaviour="trickle")

    server.script.play_by(reply)
    run = a_run(problem, person, 2, iterations=3)
    with Station(judge):
        working = in_background(run)
        until(lambda: Draft.objects.filter(run=run, text__contains="Candidate of warmth").count() == 2)
        lane = next(lane for lane in reasoning.lanes(Run.objects.get(pk=run.pk)) if lane.agent == Agent.CODER)
        assert [draft.text[:21] for draft in sorted(lane.drafts, key=lambda one: one.step)] == [
            "Candidate of warmth 1", "Candidate of warmth 2",
        ]  # fmt: skip
        assert "2 at once" in lane.doing
        page = signed_in.get(f"/runs/{run.pk}/").content.decode()
        assert 'data-draft="1.0.write.0"' in page and 'data-draft="1.1.write.0"' in page
        assert "candidate 1" in page and "candidate 2" in page
        steering.stop(run, person)
        working.join(PATIENCE)
    run.refresh_from_db()
    assert run.state == RunState.STOPPED
    assert not Call.objects.filter(outcome=Outcome.OPEN).exists()
    assert Call.objects.filter(run=run.pk, outcome=Outcome.STOPPED).count() == 2


def test_two_that_say_the_same_are_one(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person, admin: Person
) -> None:
    server.script.play_by(lambda request: counsel() if is_conductor(request) else answer("correct 1.5"))
    run = work(a_run(problem, person, 2, iterations=1))
    (dropped,) = Event.objects.filter(run=run, kind="candidate_dropped")
    assert (dropped.data["slot"], dropped.data["reason"]) == (
        1,
        "The same text as another candidate of this iteration.",
    )
    assert Version.objects.filter(run=run).count() == 1
    taken = importing.take_in(admin, transcript.written(exporting.transcript_of(run)).encode())
    assert taken.imported["difference"] == ""


@pytest.mark.parametrize("what", ["money", "tokens"])
def test_a_limit_with_room_for_one_lets_them_go_one_after_the_other(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person, what: str
) -> None:
    """Nothing is overspent, and no candidate is lost to what another has only set aside."""
    LanguageModel.objects.update(answer_tokens=1000)
    counted = Counted(seconds=0.3)
    server.script.play_by(counted)
    limit = {"money_usd": Decimal("0.022")} if what == "money" else {"tokens": 4000}
    run = work(a_run(problem, person, 3, iterations=1, **limit))
    assert Version.objects.filter(run=run).count() == 3, run.reason
    assert counted.most == 1
    assert run.cost_usd <= Decimal("0.022")


def test_what_was_written_before_a_limit_is_judged_and_kept(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person
) -> None:
    LanguageModel.objects.update(answer_tokens=1000, at_once=1)
    server.script.play_by(
        lambda request: counsel() if is_conductor(request) else Reply(answer("correct 1.7").text, counts=(3000, 2000))
    )
    run = work(a_run(problem, person, 3, iterations=4, tokens=7000))
    assert run.state == RunState.FINISHED
    assert "limit of 7,000 tokens leaves 2,000" in run.reason
    assert run.result is not None and "judged: correct 1.7" in run.result.source


def test_a_worker_that_dies_repeats_only_what_was_on_its_way(
    server: Any, model: LanguageModel, problem: Problem, device: Device, person: Person, admin: Person,
    clock_of_calls: Clock,
) -> None:  # fmt: skip
    """The first of two is recorded when the worker dies over the second: its heir asks for the second alone."""
    dying = threading.Event()
    clock_of_calls.stopped = True

    def reply(request: Request) -> Reply:
        if is_conductor(request):
            return counsel()
        slow = float(request.body["temperature"]) > 0.15 and not dying.is_set()
        return (
            Reply("I am about to ", misbehaviour="trickle")
            if slow
            else answer(f"correct {1 + request.body['temperature']}")
        )

    server.script.play_by(reply)
    run = a_run(problem, person, 2, iterations=1)
    with Station(judge):
        working = in_background(run)
        until(lambda: JournalEntry.objects.filter(run=run, key="1.0.write.0").exists())
        until(lambda: Draft.objects.filter(run=run, text__contains="about to").exists())
        dying.set()
        heir = until(lambda: silence(run) or claims.take(run.pk))  # the first worker's beat may come in between
        before = len(server.script.requests)
        tasks.work(heir)
        working.join(PATIENCE)
    run.refresh_from_db()
    asked = [one for one in server.script.requests[before:] if not is_conductor(one)]
    assert [one.body["temperature"] for one in asked] == [0.2]
    assert run.state == RunState.FINISHED, run.reason
    assert Version.objects.filter(run=run).count() == 2
    taken = importing.take_in(admin, transcript.written(exporting.transcript_of(run)).encode())
    assert taken.imported["difference"] == ""
