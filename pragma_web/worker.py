"""python -m pragma_web.worker agents | server: the two kinds of Celery worker, each with its watchdog and health page.

agents works on runs: all it does is wait, so many at once, in threads. server takes in hosts' reports, hands out
evaluations, finds what is lost; the beat lives in it.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
import threading
from dataclasses import dataclass
from typing import Any

from celery import beat
from celery.signals import task_postrun, task_prerun, task_received, worker_ready
from django.conf import settings

from apps.station.broker import Broker, quiet_celery, transport_options
from apps.station.health import serve_health
from apps.station.watchdog import Watchdog
from pragma_web import logs
from pragma_web.celery import REPORTS, REPORTS_VISIBILITY_SECONDS, RUNS, RUNS_VISIBILITY_SECONDS, app

log = logging.getLogger("pragma_web.worker")


@dataclass(frozen=True)
class Role:
    """One kind of worker: the queue it consumes, how many tasks at once, and whether the beat lives in it."""

    name: str
    queue: str
    threads: int
    visibility_seconds: int
    beat: bool
    patient: bool


ROLES = {
    "agents": Role("agents", RUNS, 64, RUNS_VISIBILITY_SECONDS, beat=False, patient=True),
    "server": Role("server", REPORTS, 4, REPORTS_VISIBILITY_SECONDS, beat=True, patient=False),
}


class Count:
    """Tasks that run now, counted by Celery's signals."""

    def __init__(self) -> None:
        self._running = 0
        self._lock = threading.Lock()
        task_prerun.connect(self._begin, weak=False)
        task_postrun.connect(self._finish, weak=False)

    def __call__(self) -> int:
        return self._running

    def _begin(self, **_: Any) -> None:
        with self._lock:
            self._running += 1

    def _finish(self, **_: Any) -> None:
        with self._lock:
            self._running -= 1


def start_beat(**_: Any) -> None:
    """The beat in a thread of this worker, its schedule in memory: a second process and a file of its own for nothing."""
    service = beat.Service(app, scheduler_cls=beat.Scheduler)
    threading.Thread(target=service.start, name="beat", daemon=True).start()


def main(words: list[str] | None = None) -> int:
    """Work until told to leave."""
    parser = argparse.ArgumentParser("python -m pragma_web.worker", description=__doc__.partition("\n")[0])
    parser.add_argument("role", choices=sorted(ROLES))
    parser.add_argument("--health", default="", help="serve /healthz at this unix socket or HOST:PORT")
    parser.add_argument("--threads", type=int, help="tasks at once")
    given = parser.parse_args(words)
    role = ROLES[given.role]
    threads = given.threads or role.threads

    logs.set_up()
    quiet_celery()
    logs.follow_tasks()
    app.conf.update(
        broker_transport_options=transport_options(role.visibility_seconds, f"pragma.{role.name}"),
        worker_proc_alive_timeout=30,
    )
    watchdog = Watchdog(role.name, Broker(settings.REDIS_URL), [role.queue], threads, Count(), patient=role.patient)
    task_received.connect(lambda **_: watchdog.count(), weak=False)
    if role.beat:
        worker_ready.connect(start_beat, weak=False)
    serve_health(given.health, watchdog.health)
    watchdog.start()
    worker = app.Worker(
        hostname=f"{role.name}@{socket.gethostname()}-{os.getpid()}",
        pool="threads",
        concurrency=threads,
        queues=[role.queue],
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
        quiet=True,
    )
    log.info("Worker %s: queue %s, %s at once", role.name, role.queue, threads)
    worker.start()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main())
