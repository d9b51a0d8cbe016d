"""Waiting for a job from a thread: woken by the jobs' bell within milliseconds, by looking every second without it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import redis
from django.conf import settings

from apps.hosts.bell import CHANNEL
from apps.hosts.models import Job

LOOK_EVERY = 1.0
STOP_EVERY = 0.25

log = logging.getLogger(__name__)


def wait(
    job_id: int,
    timeout: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    news: Callable[[Job], None] = lambda job: None,
) -> Job:
    """The job once it is over, or as it is when `timeout` seconds have passed or `should_stop` says so.

    `should_stop` is asked four times a second; `news` is called with the job each time it may have changed. Both run in
    the calling thread and what they raise passes through.
    """
    ear = _ear()
    limit = None if timeout is None else time.monotonic() + timeout
    with ear.listening(job_id) as rung:
        while True:
            rung.clear()
            job = Job.objects.select_related("device__host").get(pk=job_id)
            news(job)
            if job.is_over or should_stop() or (limit is not None and time.monotonic() >= limit):
                return job
            look_at = time.monotonic() + LOOK_EVERY
            while not rung.wait(_pause(look_at, limit)):
                if should_stop():
                    return job
                if time.monotonic() >= min(look_at, limit or look_at):
                    break


def _pause(look_at: float, limit: float | None) -> float:
    until = look_at if limit is None else min(look_at, limit)
    return max(0.0, min(STOP_EVERY, until - time.monotonic()))


class _Ear:
    """One subscription a process; wakes the threads that listen for a job."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._waiting: dict[int, set[threading.Event]] = {}
        self._lock = threading.Lock()
        threading.Thread(target=self._listen, name="jobs' bell", daemon=True).start()

    def listening(self, job_id: int) -> _Listening:
        return _Listening(self, job_id)

    def add(self, job_id: int, rung: threading.Event) -> None:
        with self._lock:
            self._waiting.setdefault(job_id, set()).add(rung)

    def remove(self, job_id: int, rung: threading.Event) -> None:
        with self._lock:
            left = self._waiting.get(job_id, set())
            left.discard(rung)
            if not left:
                self._waiting.pop(job_id, None)

    def _ring(self, job_id: int | None) -> None:
        with self._lock:
            chosen = self._waiting.values() if job_id is None else [self._waiting.get(job_id, set())]
            for group in chosen:
                for rung in group:
                    rung.set()

    def _listen(self) -> None:
        while True:
            try:
                self._follow(redis.Redis.from_url(self._url))
            except (redis.RedisError, OSError, ValueError):
                time.sleep(1.0)

    def _follow(self, server: redis.Redis) -> None:
        with server.pubsub(ignore_subscribe_messages=True) as subscription:  # type: ignore[no-untyped-call]
            subscription.subscribe(CHANNEL)
            self._ring(None)  # what was rung before is found by looking
            for message in subscription.listen():
                self._ring(int(message["data"]))


class _Listening:
    def __init__(self, ear: _Ear, job_id: int) -> None:
        self._ear, self._job_id, self._rung = ear, job_id, threading.Event()

    def __enter__(self) -> threading.Event:
        self._ear.add(self._job_id, self._rung)
        return self._rung

    def __exit__(self, *_: object) -> None:
        self._ear.remove(self._job_id, self._rung)


_ears: dict[str, _Ear] = {}
_ears_lock = threading.Lock()


def _ear() -> _Ear:
    with _ears_lock:
        if settings.REDIS_URL not in _ears:
            _ears[settings.REDIS_URL] = _Ear(settings.REDIS_URL)
        return _ears[settings.REDIS_URL]
