"""kill -9 of the agents worker in the middle of a model's answer: the run is resumed, and no question is paid for twice but
the one that was on its way. The key is in no file that any process wrote.
"""

from __future__ import annotations

import signal
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings as django_settings
from django.db import connection

from apps.hosts.models import Device
from apps.ledger import accounts
from apps.ledger.models import Call, Outcome
from apps.people.models import Person
from apps.runs import claims
from apps.runs.models import Draft, Problem
from tests.agents_models.conftest import KEY
from tests.agents_models.server import ModelServer, Reply, Request
from tests.agents_models.world import is_conductor
from tests.ledger.world import by_what_is_asked, judge
from tests.processes.agents_workers import Workers, launched, model_server, over, scripted_model
from tests.processes.census import wait_until
from tests.runs.scripted import silence
from tests.runs.station import Station


def asked(server: ModelServer) -> list[tuple[bool, str]]:
    """What the server was asked, in order: by whom, and the whole conversation."""
    return [(is_conductor(one), str(one.body["messages"])) for one in server.script.requests]


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_killed_worker_asks_nothing_again_but_what_it_was_being_told(
    workers: Workers, problem: Problem, device: Device, person: Person
) -> None:
    with model_server() as server, Station(judge):
        scripted_model(server)
        workers.start()
        server.script.play_by(by_what_is_asked)
        calm = launched(problem, person)
        workers.wake(calm)
        over(calm, workers)
        expected = asked(server)
        assert len(expected) == 5

        server.script.play_by(in_the_third_question_slow)
        run = launched(problem, person)
        workers.wake(run)
        wait_until(lambda: Draft.objects.filter(run=run, text__contains="about to say").exists(), "no answer began")
        workers.end(signal.SIGKILL)
        interrupted = asked(server)
        assert interrupted == expected[:3]
        silence(run)
        assert accounts.release_lost(claims.living(accounts.open_claims())) == 1

        server.script.play_by(by_what_is_asked)
        workers.start()
        workers.wake(run)
        over(run, workers)
        assert asked(server) == expected[2:]

        assert (run.attempt, run.speedup) == (2, calm.speedup)
        assert list(Call.objects.filter(run=run.pk, outcome=Outcome.LOST).values_list("counted_usd", flat=True)) == [0]
        assert run.cost_usd == calm.cost_usd
        workers.end(signal.SIGTERM)
        assert_no_key(workers.folder)


def in_the_third_question_slow(request: Request) -> Reply:
    """As calm, until the second iteration's Coder is asked: that answer begins and never ends."""
    if not is_conductor(request) and "judged: " in request.prompt:
        return Reply("I was about to say something of tiles, at length. ", misbehaviour="trickle")
    return by_what_is_asked(request)


def assert_no_key(folder: Path) -> None:
    """Neither the broker's files, nor the workers' log, nor the database's own file holds it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    database = django_settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        name = Path(str(connection.settings_dict["NAME"]))
        files += [path for path in name.parent.iterdir() if path.name.startswith(name.name)]
    assert any("aof" in path.name for path in files)
    for path in files:
        written = path.read_bytes()
        for form in (KEY, KEY[:-4], quote(KEY, safe="")):
            assert form.encode() not in written, path
