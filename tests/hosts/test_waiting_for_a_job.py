"""A thread that waits for a job is woken when it is over, finds out by looking where there is no bell, and can be stopped."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.db import connection

from apps.hosts import bell, jobs, waiting
from apps.hosts.models import Job, JobState
from bench import private_servers as servers
from tests.hosts.conftest import Send, Station, Submit, evaluation
from tests.patience import PATIENCE, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]


@pytest.fixture
def broker(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A broker of this test's own, which may take its time."""
    monkeypatch.setattr(bell, "_muted_until", 0.0)
    monkeypatch.setattr(bell, "_server", redis.Redis.from_url)
    with tempfile.TemporaryDirectory(prefix="pragma-b-") as folder:
        try:
            with servers.broker(Path(folder)) as address:
                settings.REDIS_URL = address
                yield address
        except servers.NotHere as missing:
            pytest.skip(str(missing))


class Waiter(threading.Thread):
    """Waits for a job in a thread of its own."""

    def __init__(self, job: Job, **options: Any) -> None:
        super().__init__(daemon=True)
        self.job, self.options = job, options
        self.got: Job | None = None
        self.woken_at = 0.0
        self.news: list[str] = []
        self.start()

    def run(self) -> None:
        self.got = waiting.wait(self.job.pk, news=lambda job: self.news.append(job.state), **self.options)
        self.woken_at = time.monotonic()
        connection.close()


def test_it_is_woken_by_the_bell_long_before_it_would_look(
    broker: str, send: Send, station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY", 600.0)
    job, _ = send()
    waiter = Waiter(job)
    with redis.Redis.from_url(broker) as server:
        until(lambda: waiter.news and server.pubsub_numsub(bell.CHANNEL)[0][1], "nobody listens to the bell")
    began = time.monotonic()
    jobs.end(job_now(job), JobState.DONE, result=evaluation())
    waiter.join(PATIENCE)
    assert waiter.got is not None and waiter.got.state == JobState.DONE
    assert waiter.news[-1] == JobState.DONE
    print(f"woken after {(waiter.woken_at - began) * 1000:.1f} ms")


def job_now(job: Job) -> Job:
    return Job.objects.get(pk=job.pk)


def test_without_a_bell_it_finds_out_by_looking(
    submit: Submit, station: Station, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "LOOK_EVERY", 0.2)
    job = submit()
    waiter = Waiter(job)
    jobs.cancel(job, "enough")
    waiter.join(PATIENCE)
    assert waiter.got is not None and waiter.got.state == JobState.CANCELLED


def test_it_stops_when_told_and_when_time_is_up(submit: Submit, station: Station) -> None:
    job, stop = submit(), threading.Event()
    waiter = Waiter(job, should_stop=stop.is_set)
    stop.set()
    waiter.join(PATIENCE)
    assert waiter.got is not None and waiter.got.state == JobState.WAITING
    assert waiting.wait(job.pk, timeout=0.05).state == JobState.WAITING
