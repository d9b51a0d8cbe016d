"""kill -9 of the agents worker in the middle of a model's answer: the run is resumed, and no question is paid for twice but
the one that was on its way. The key is in no file that any process wrote.
"""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
import redis
from django.conf import settings as django_settings
from django.db import connection

from apps.hosts.models import Device
from apps.ledger import accounts
from apps.ledger.models import Call, LanguageModel, Outcome
from apps.people.models import Person
from apps.runs import claims
from apps.runs.models import Draft, Problem
from tests.agents_models.conftest import KEY
from tests.agents_models.server import ModelServer, Reply, Request
from tests.agents_models.world import answer, counsel, is_conductor
from tests.ledger.test_a_run_with_a_misbehaving_model import ALWAYS
from tests.ledger.world import by_what_is_asked, judge
from tests.patience import until
from tests.processes.agents_workers import Workers, launched, model_server, over, scripted_model
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
        until(lambda: Draft.objects.filter(run=run, text__contains="about to say").exists(), "no answer began")
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


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_server_that_says_the_key_wherever_it_can_gets_it_into_no_file_of_the_broker_or_the_workers(
    workers: Workers, problem: Problem, device: Device, person: Person
) -> None:
    """One run that meets busy, broken, deaf, cut off and talkative answers, and finds its best all the same."""
    kinds = ("429", "500", "deaf", "cut", "malformed", "error within", "echo", "empty", "hang", "trickle")
    spoilt = [ALWAYS[kind][0] for kind in kinds]
    coder = iter(
        [*spoilt[:2], answer("correct 1.8"), *(one for reply in spoilt[2:] for one in (reply, answer("correct 2.1")))]
    )
    with model_server() as server, Station(judge):
        scripted_model(server)
        LanguageModel.objects.update(silence_seconds=1, call_seconds=2)
        server.script.play_by(
            lambda request: counsel() if is_conductor(request) else next(coder, answer("correct 2.6"))
        )
        workers.start()
        run = launched(problem, person, iterations=4)
        workers.wake(run)
        over(run, workers)

        assert run.result is not None and run.speedup is not None and run.speedup > 1.7
        assert sum(not is_conductor(one) for one in server.script.requests) > len(kinds) // 2
        assert workers.running is not None
        for seen in ("cmdline", "environ"):
            assert KEY.encode() not in Path(f"/proc/{workers.running.pid}/{seen}").read_bytes()
        redis.Redis.from_url(workers.broker).save()
        workers.end(signal.SIGTERM)
        assert any(path.suffix == ".rdb" for path in workers.folder.rglob("*"))
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
        # read by another process: closing a file drops all locks that this one holds on it, SQLite's too
        written = subprocess.run(["cat", path], capture_output=True, check=True).stdout
        for form in (KEY, KEY[:-4], quote(KEY, safe="")):
            assert form.encode() not in written, path
