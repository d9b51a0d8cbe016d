"""Agents workers as production starts them, on a test's own database and broker, with a scripted model server."""

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

import pytest
from celery import Celery
from django.db import connection
from django.utils import timezone

from apps.agents.gateway.secret import Secret
from apps.hosts import bell as jobs_bell
from apps.hosts.models import Host
from apps.ledger import sealing
from apps.ledger.models import KeySource, LanguageModel
from apps.people.models import Person
from apps.runs import launch, queue
from apps.runs.launch import LaunchOrder
from apps.runs.models import Problem, Run, RunState
from apps.station.app import queue as celery_queue
from apps.station.broker import celery_url, shared_settings
from bench import private_servers as servers
from tests.agents_models.conftest import KEY
from tests.agents_models.server import ModelServer
from tests.patience import PATIENCE, until

PRAGMA_KEY = "a-test-key-of-more-than-twenty-characters"


class Workers:
    """Agents workers as production starts them, on this test's database and a broker that writes everything down."""

    def __init__(self, folder: Path, broker: str) -> None:
        self.folder, self.broker = folder, broker
        self._app = Celery("test", broker=celery_url(broker), set_as_current=False, fixups=[])
        self._app.conf.update(shared_settings() | {"task_queues": [celery_queue(queue.QUEUE)]})
        self.running: subprocess.Popen[bytes] | None = None

    def start(self, threads: int = 2) -> None:
        """One worker; its output in a file."""
        with (self.folder / "worker.log").open("ab") as log:
            command = [sys.executable, "-m", "pragma_web.worker", "agents", "--threads", str(threads)]
            self.running = subprocess.Popen(command, cwd=servers.ROOT, env=self._environment(), stdout=log, stderr=log)

    def said(self) -> str:
        """What they logged."""
        return (self.folder / "worker.log").read_text()

    def wake(self, run: Run) -> None:
        """Tell the workers of the run."""
        self._app.send_task(queue.TASK, args=[run.pk], queue=queue.QUEUE)

    def end(self, number: int) -> None:
        """Send the worker that signal, and wait until it is gone."""
        if self.running is not None:
            self.running.send_signal(number)
            self.running.wait(PATIENCE)
            self.running = None

    def _environment(self) -> dict[str, str]:
        database = connection.settings_dict
        address = os.environ.get("DATABASE_URL", "")
        address = f"{address.rpartition('/')[0]}/{database['NAME']}" if address else f"sqlite:///{database['NAME']}"
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV") if name in os.environ}
        return inherited | {
            "DATABASE_URL": address,
            "REDIS_URL": self.broker,
            "PRAGMA_KEY": PRAGMA_KEY,
            "PRAGMA_VAR": str(self.folder),
            "PYTHONPATH": str(servers.ROOT),
        }


@contextmanager
def agents_workers(settings: Any) -> Iterator[Workers]:
    """None runs at first, and none at the end."""
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


def scripted_model(server: ModelServer) -> LanguageModel:
    """The model that server plays, at a price; its key is kept in the settings."""
    return LanguageModel.objects.create(
        name="scripted", model_id="openai/scripted", api_base=server.address, key_source=KeySource.KEPT,
        key_sealed=sealing.seal(Secret(KEY)), context_tokens=64_000, usd_per_million_in=2, usd_per_million_out=10,
    )  # fmt: skip


def launched(problem: Problem, person: Person, iterations: int = 3) -> Run:
    """A run of that model on the host, which was heard just now; no worker knows of it yet."""
    Host.objects.update(seen_at=timezone.now())
    return launch.launch(person, LaunchOrder(problem, "here/cpu", coder="scripted", iterations=iterations))


def over(run: Run, workers: Workers) -> None:
    """Wait until the run has finished, and fetch it."""

    def ended() -> bool:
        run.refresh_from_db()
        return not run.is_live

    try:
        until(ended, "the run does not end", within=120)
    except AssertionError as problem:
        raise AssertionError(f"{problem}: {run.state}, {run.doing}; {workers.said()[-1500:]}") from None
    assert run.state == RunState.FINISHED, run.reason
