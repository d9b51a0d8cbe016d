"""python -m apps.station --broker URL --name NAME: join a PRAGMA server as a host that judges."""

from __future__ import annotations

import argparse
import logging
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

from celery import Celery
from celery.worker.control import control_command

from apps.kernels.host.report import host_report
from apps.kernels.plain import Plain, from_plain
from apps.station.app import make_app
from apps.station.broker import Broker, quiet_celery
from apps.station.health import serve_health
from apps.station.messages import CANCEL, INTRODUCE, WORK, Order, device_queue, node_name
from apps.station.place import default_state
from apps.station.station import Station
from apps.station.watchdog import Watchdog

log = logging.getLogger("apps.station")


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """The command line, read and checked."""
    parser = argparse.ArgumentParser("python -m apps.station", description=__doc__.partition(": ")[2])
    parser.add_argument("--broker", default=os.environ.get("REDIS_URL", ""), help="redis://... ; default $REDIS_URL")
    parser.add_argument("--name", default=_own_name(), help="what the server calls this host; default %(default)s")
    parser.add_argument("--state", type=Path, help="where results wait that could not be sent yet")
    parser.add_argument("--health", default="", help="serve /healthz at this unix socket or HOST:PORT")
    given = parser.parse_args(words)
    if not given.broker:
        parser.error("give the server's broker: --broker redis://HOST:6379/0, or REDIS_URL")
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", given.name):
        parser.error(f"{given.name!r} is no name for a host: up to 40 letters, digits, - and _")
    given.state = given.state or default_state(given.name)
    return given


def _own_name() -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", socket.gethostname())[:40] or "host"


def register(app: Celery, station: Station, watchdog: Watchdog) -> None:
    """Tie orders and broadcasts to the station."""

    @app.task(name=WORK, ignore_result=True)
    def work(order: Plain) -> None:
        watchdog.count()
        station.take(from_plain(Order, order))

    def cancel(state: Any, job: int = 0, attempt: int = 0, **_: Any) -> dict[str, Any]:
        station.cancel(int(job), int(attempt))
        return {"ok": True}

    def introduce(state: Any, **_: Any) -> dict[str, Any]:
        station.introduce()
        return {"ok": True}

    control_command(name=CANCEL)(cancel)
    control_command(name=INTRODUCE)(introduce)


def main(words: list[str] | None = None) -> int:
    """Judge until told to leave."""
    given = arguments(words)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    quiet_celery()
    report = host_report(quick=True)
    devices = tuple(device.name for device in report.devices)
    app = make_app(given.broker, given.name, devices)
    station = Station(app, given.name, report, given.state)
    queues = [device_queue(given.name, device) for device in devices]
    # Orders are only put on desks by the worker, so that it always has a slot free.
    watchdog = Watchdog(
        "station", Broker(given.broker), queues, 1 << 30, lambda: int(station.busy), facts=station.health
    )
    register(app, station, watchdog)
    serve_health(given.health, watchdog.health)
    watchdog.start()
    station.start()
    log.info("Station %s: devices %s, isolation %s", given.name, ", ".join(devices), report.isolation_level)
    try:
        worker = app.Worker(
            hostname=node_name(given.name),
            pool="solo",
            concurrency=1,
            queues=queues,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
            quiet=True,
        )
        worker.start()
        return int(worker.exitcode or 0)
    finally:
        station.close()


if __name__ == "__main__":
    sys.exit(main())
