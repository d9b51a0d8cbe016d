"""kill -9 of the agents worker in the middle of a model's answer: the run is resumed, and no question is paid for twice but
the one that was on its way. The key is in no file that any process wrote.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from celery import Celery
from django.conf import settings as django_settings
from django.db import connection
from django.utils import timezone

from apps.agents.gateway.secret import Secret
from apps.hosts import bell as jobs_bell
from apps.hosts.models import Device, Host
from apps.ledger import accounts, sealing
from apps.ledger.models import Call, KeySource, LanguageModel, Outcome
from apps.people.models import Person
from apps.runs import claims, launch, queue
from apps.runs.launch import LaunchOrder
from apps.runs.models import Draft, Problem, Run, RunState
from apps.station.app import queue as celery_queue
from apps.station.broker import celery_url, shared_settings
from bench import private_servers as servers
from tests.agents_models.conftest import KEY
from tests.agents_models.server import ModelServer, Reply, Request
from tests.agents_models.world import is_conductor
from tests.ledger.world import by_what_is_asked, judge
from tests.processes.census import wait_until
from tests.runs.scripted import silence
from tests.runs.station import Station

PRAGMA_KEY = "a-test-key-of-more-than-twenty-characters"


class Workers:
    """Agents workers as production starts them, on this test's database and a broker that writes everything down."""

    def __init__(self, folder: Path, broker: str) -> None:
        self._folder, self._broker = folder, broker
        self._app = Celery("test", broker=celery_url(broker), set_as_current=False, fixups=[])
        self._app.conf.update(shared_settings() | {"task_queues": [celery_queue(queue.QUEUE)]})
        self.running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """One worker; its output in a file."""
        with (self._folder / "worker.log").open("ab") as log:
            command = [sys.executable, "-m", "pragma_web.worker", "agents", "--threads", "2"]
            self.running = subprocess.Popen(command, cwd=servers.ROOT, env=self._environment(), stdout=log, stderr=log)

    def said(self) -> str:
        """What they logged."""
        return (self._folder / "worker.log").read_text()

    def wake(self, run: Run) -> None:
        """Tell the workers of the run."""
        self._app.send_task(queue.TASK, args=[run.pk], queue=queue.QUEUE)

    def end(self, number: int) -> None:
        """Send the worker that signal, and wait until it is gone."""
        if self.running is not None:
            self.running.send_signal(number)
            self.running.wait(20)
            self.running = None

    def _environment(self) -> dict[str, str]:
        database = connection.settings_dict
        address = os.environ.get("DATABASE_URL", "")
        address = f"{address.rpartition('/')[0]}/{database['NAME']}" if address else f"sqlite:///{database['NAME']}"
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV") if name in os.environ}
        return inherited | {
            "DATABASE_URL": address,
            "REDIS_URL": self._broker,
            "PRAGMA_KEY": PRAGMA_KEY,
            "PRAGMA_VAR": str(self._folder),
            "PYTHONPATH": str(servers.ROOT),
        }


@pytest.fixture
def workers(settings: Any, transactional_db: None) -> Iterator[Workers]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pragma-kill-")))
        try:
            url = stack.enter_context(servers.broker(folder, keeps=True))
        except servers.NotHere as missing:
            pytest.skip(str(missing))
        settings.REDIS_URL, settings.PRAGMA_KEY = url, PRAGMA_KEY
        jobs_bell._muted_until = 0.0
        made = Workers(folder, url)
        stack.callback(lambda: made.end(signal.SIGKILL))
        yield made


@contextmanager
def model_server() -> Iterator[ModelServer]:
    server = ModelServer()
    try:
        yield server
    finally:
        server.close()


def launched(problem: Problem, person: Person) -> Run:
    Host.objects.update(seen_at=timezone.now())
    return launch.launch(person, LaunchOrder(problem, "here/cpu", coder="scripted", iterations=3))


def asked(server: ModelServer) -> list[tuple[bool, str]]:
    """What the server was asked, in order: by whom, and the whole conversation."""
    return [(is_conductor(one), str(one.body["messages"])) for one in server.script.requests]


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_killed_worker_asks_nothing_again_but_what_it_was_being_told(
    workers: Workers, problem: Problem, device: Device, person: Person
) -> None:
    with model_server() as server, Station(judge):
        LanguageModel.objects.create(
            name="scripted", model_id="openai/scripted", api_base=server.address, key_source=KeySource.KEPT,
            key_sealed=sealing.seal(Secret(KEY)), context_tokens=64_000, usd_per_million_in=2, usd_per_million_out=10,
        )  # fmt: skip
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
        assert_no_key(workers._folder)


def in_the_third_question_slow(request: Request) -> Reply:
    """As calm, until the second iteration's Coder is asked: that answer begins and never ends."""
    if not is_conductor(request) and "judged: " in request.prompt:
        return Reply("I was about to say something of tiles, at length. ", misbehaviour="trickle")
    return by_what_is_asked(request)


def over(run: Run, workers: Workers) -> None:
    def ended() -> bool:
        run.refresh_from_db()
        return not run.is_live

    try:
        wait_until(ended, "the run does not end", within=120)
    except AssertionError as problem:
        raise AssertionError(f"{problem}: {run.state}, {run.doing}; {workers.said()[-1500:]}") from None
    assert run.state == RunState.FINISHED, run.reason


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
