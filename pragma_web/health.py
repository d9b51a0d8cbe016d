"""`/healthz` of the web process: whether it can read its database; whether it hears the broker is said beside it."""

from __future__ import annotations

import redis
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse


@login_not_required
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the database answers, 503 otherwise. Without the broker pages work on and live views read by a timer."""
    database, broker = _database(), _broker()
    status = 200 if database == "ok" else 503
    return JsonResponse(
        {"process": "web", "version": settings.VERSION, "database": database, "broker": broker}, status=status
    )


def _database() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "away"
    return "ok"


def _broker() -> str:
    try:
        with redis.Redis.from_url(settings.REDIS_URL, socket_timeout=0.5, socket_connect_timeout=0.5) as server:
            server.ping()
    except (redis.RedisError, OSError):
        return "away"
    return "ok"
