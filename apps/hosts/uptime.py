"""Since when server worker and broker have both been up, as far as the looks every two seconds can tell.

Kept in the broker, which is where the question is about: the looks come through it, so a broker or a worker that was
away leaves a gap between them, and a broker that was started anew answers with another `run_id`.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from functools import cache

import redis
from django.conf import settings
from django.utils import timezone

KEY = "pragma.uptime"
GAP = timedelta(seconds=10)


@cache
def _server(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, socket_timeout=2.0, socket_connect_timeout=2.0)


def tick(now: datetime | None = None) -> datetime:
    """One look; since when both have been up. Raises `redis.RedisError` where the broker is away."""
    now = now or timezone.now()
    server = _server(settings.REDIS_URL)
    run_id = str(server.info("server")["run_id"])
    since = _known(server, run_id, now) or now
    server.set(KEY, json.dumps({"run_id": run_id, "since": since.isoformat(), "ticked": now.isoformat()}))
    return since


def up_since() -> datetime | None:
    """The same without looking anew; None where that can't be said now."""
    server = _server(settings.REDIS_URL)
    try:
        return _known(server, str(server.info("server")["run_id"]), timezone.now())
    except (redis.RedisError, OSError):
        return None


def _known(server: redis.Redis, run_id: str, now: datetime) -> datetime | None:
    raw = server.get(KEY)
    if raw is None:
        return None
    kept = json.loads(raw)
    if kept["run_id"] != run_id or now - datetime.fromisoformat(kept["ticked"]) > GAP:
        return None
    return datetime.fromisoformat(kept["since"])
