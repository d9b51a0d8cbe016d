"""The bell of jobs: wakes who waits for one (see `waiting`). It carries nothing but the job's number."""

from __future__ import annotations

import logging
import time
from functools import cache

import redis
from django.conf import settings
from django.db import transaction

CHANNEL = "pragma.jobs"
_QUIET_AFTER_FAILURE = 3.0  # seconds: a broker that is away must not slow down every commit

log = logging.getLogger(__name__)
_muted_until = 0.0


@cache
def _server(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=0.5, socket_connect_timeout=0.5)


def ring(job_id: int) -> None:
    """Wake whoever waits for that job. Never raises: without it they find the news by looking."""
    global _muted_until
    if time.monotonic() < _muted_until:
        return
    try:
        _server(settings.REDIS_URL).publish(CHANNEL, str(job_id))
    except (redis.RedisError, OSError) as problem:
        _muted_until = time.monotonic() + _QUIET_AFTER_FAILURE
        log.info("The jobs' bell is silent for %.0f s: %s", _QUIET_AFTER_FAILURE, problem)


def ring_on_commit(job_id: int) -> None:
    """Ring when the open transaction commits, or now if none is open."""
    transaction.on_commit(lambda: ring(job_id))
