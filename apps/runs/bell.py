"""The bell: wakes the web processes when something was committed. It carries nothing, and losing a ring loses no truth.

One publish on the broker's server, which is a tenth of what a group message through the channel layer costs a thread. A
silent bell only means that readers find the news by their timer.
"""

from __future__ import annotations

import logging
import time
from functools import cache

import redis
from django.conf import settings
from django.db import transaction

CHANNEL = "pragma.bell"
_QUIET_AFTER_FAILURE = 5.0  # seconds: a broker that is away must not slow down every commit

log = logging.getLogger(__name__)
_muted_until = 0.0


@cache
def _server(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=0.5, socket_connect_timeout=0.5)


def ring() -> None:
    """Wake whoever watches. Never raises."""
    global _muted_until
    if time.monotonic() < _muted_until:
        return
    try:
        _server(settings.REDIS_URL).publish(CHANNEL, b"1")
    except (redis.RedisError, OSError) as problem:
        _muted_until = time.monotonic() + _QUIET_AFTER_FAILURE
        log.info("The bell is silent for %.0f s: %s", _QUIET_AFTER_FAILURE, problem)


def ring_on_commit() -> None:
    """Ring when the open transaction commits, or now if none is open."""
    transaction.on_commit(ring)
