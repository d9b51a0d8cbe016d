"""The broker as Celery and as plain Redis see it: addresses, settings that both sides share, and whether it answers."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from typing import Any

import redis
from celery.exceptions import SecurityWarning
from celery.signals import setup_logging

CONNECT_SECONDS = 2.0
# Longer than any blocking read of Celery's, shorter than people's patience with a broker that hangs.
SOCKET_SECONDS = 15.0


def celery_url(url: str) -> str:
    """The same server as kombu writes it: a unix socket is `redis+socket://`."""
    return url.replace("unix://", "redis+socket://", 1) if url.startswith("unix://") else url


def transport_options(visibility_seconds: int, prefix: str) -> dict[str, Any]:
    """Kombu's options. Each kind of worker keeps its own list of unacknowledged messages (`prefix`), because whoever
    looks through a list hands out again what is older than *its own* time-out, whoever took it.
    """
    return {
        "visibility_timeout": visibility_seconds,
        "unacked_key": f"{prefix}.unacked",
        "unacked_index_key": f"{prefix}.unacked_index",
        "unacked_mutex_key": f"{prefix}.unacked_mutex",
        "socket_connect_timeout": CONNECT_SECONDS,
        "socket_keepalive": True,
        "health_check_interval": 10,
    }


def shared_settings() -> dict[str, Any]:
    """Celery's settings that are the same in every process: JSON only, no results, no surprises on reconnecting."""
    return {
        "accept_content": ["json"],
        "task_serializer": "json",
        "result_serializer": "json",
        "event_serializer": "json",
        "task_ignore_result": True,
        "result_backend": None,
        "enable_utc": True,
        "timezone": "UTC",
        "worker_prefetch_multiplier": 1,
        "worker_send_task_events": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_heartbeat": 0,
        "task_default_delivery_mode": "persistent",
        "task_publish_retry": False,
        "worker_enable_remote_control": True,
        "control_queue_ttl": 60.0,
    }


def quiet_celery() -> None:
    """Celery leaves the process's logging as it is, with no line for each message, and doesn't warn of running as root:
    that is about pickle, which nothing here accepts.
    """
    setup_logging.connect(_leave_logging, weak=False)
    warnings.filterwarnings("ignore", category=SecurityWarning)
    for name in ("celery.worker.strategy", "celery.app.trace", "celery.beat"):
        logging.getLogger(name).setLevel(logging.WARNING)


def _leave_logging(**_: Any) -> None:
    """Celery configures logging only if nobody else says that they do."""


@dataclass(frozen=True)
class BrokerState:
    """Which server process answers (`run_id` changes when it restarts) and how long that one has been up, in seconds."""

    run_id: str
    uptime: float


class Broker:
    """A plain connection to the broker's server, for questions. Every method raises `redis.RedisError` or OSError."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._server = redis.Redis.from_url(
            url, socket_timeout=CONNECT_SECONDS, socket_connect_timeout=CONNECT_SECONDS, health_check_interval=0
        )

    def state(self) -> BrokerState:
        """Who answers."""
        facts = self._server.info("server")
        return BrokerState(str(facts["run_id"]), float(facts["uptime_in_seconds"]))

    def waiting(self, queue: str) -> int:
        """Messages that nobody has taken from a queue."""
        return int(self._server.llen(queue))

    def close(self) -> None:
        """Let go of the connection."""
        self._server.close()
