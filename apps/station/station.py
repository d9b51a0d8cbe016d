"""The station: takes orders in for its devices, reports what becomes of them, says every few seconds what it is doing."""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import socket
import threading
import time
from pathlib import Path

from celery import Celery
from celery.utils.log import get_logger
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from apps.kernels.machine import HostReport
from apps.kernels.plain import Plain, to_plain
from apps.station.desk import Desk, bench_environment
from apps.station.messages import ALIVE_EVERY, LASTING, REPORTS_QUEUE, TAKE_REPORT, Order, Report, ReportKind
from apps.station.outbox import Outbox
from apps.station.place import fresh_temporary

log: logging.Logger = get_logger(__name__)


class Station:
    """One host's station. Its desks do the work; what it says goes to the server through the broker."""

    def __init__(self, app: Celery, host: str, report: HostReport, state: Path) -> None:
        self.host = host
        self.identity = f"{socket.gethostname()[:30]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._app = app
        self._report = report
        self._outbox = Outbox(state / "outbox", self._send)
        self._numbers: dict[tuple[int, int], int] = {}
        self._quiet_until = 0.0
        self._lock = threading.Lock()
        self._leaving = threading.Event()
        self._temporary = fresh_temporary(state)
        environment = bench_environment(self._temporary)
        self._desks = {device.name: Desk(device.name, self._tell, environment) for device in report.devices}
        self._thread = threading.Thread(target=self._live, name="alive", daemon=True)

    def start(self) -> None:
        """Introduce this host to the server and begin to work. What an earlier station could not send goes first."""
        self._outbox.flush()
        self.introduce()
        for desk in self._desks.values():
            desk.start()
        self._thread.start()

    def introduce(self) -> None:
        """Say what this host is."""
        self._say(ReportKind.HELLO, to_plain(self._report))

    def take(self, order: Order) -> None:
        """Put an order on its device's desk."""
        desk = self._desks.get(order.device)
        if desk is None:
            self._tell(order, ReportKind.FAILED, {"error": f"This host has no device {order.device!r}."}, False)
        else:
            log.info("%s: job %s, attempt %s taken in", order.origin, order.job, order.attempt)
            desk.put(order)

    def cancel(self, job: int, attempt: int) -> None:
        """Stop working on that attempt and kill its jail."""
        log.info("Job %s, attempt %s is no longer wanted", job, attempt)
        for desk in self._desks.values():
            desk.cancel(job, attempt)

    def close(self) -> None:
        """End all desks; what they were doing is reported as broken off."""
        self._leaving.set()
        for desk in self._desks.values():
            desk.close()
        self._outbox.flush()
        shutil.rmtree(self._temporary, ignore_errors=True)

    @property
    def busy(self) -> bool:
        """Whether any device has an order."""
        return any(desk.doing() for desk in self._desks.values())

    def health(self) -> dict[str, Plain]:
        """What its health page says."""
        doing = [item for desk in self._desks.values() for item in desk.doing()]
        return {"host": self.host, "devices": sorted(self._desks), "doing": to_plain(doing)}

    # -- reports -----------------------------------------------------------------------------------------------------

    def _live(self) -> None:
        while not self._leaving.wait(ALIVE_EVERY):
            doing = [item for desk in self._desks.values() for item in desk.doing()]
            if self._say(ReportKind.ALIVE, to_plain(doing)):
                self._outbox.flush()

    def _say(self, kind: ReportKind, payload: Plain) -> bool:
        return self._send(Report(self.host, self.identity, kind, payload=payload))

    def _tell(self, order: Order, kind: ReportKind, payload: Plain, in_jail: bool) -> None:
        """Report on an order. What must arrive is kept until it has; other news is only for those who watch."""
        key = (order.job, order.attempt)
        with self._lock:
            n = self._numbers[key] = self._numbers.get(key, 0) + 1
            if kind in LASTING:
                self._numbers.pop(key)
        report = Report(
            self.host, self.identity, kind, order.device, order.job, order.attempt, n, in_jail=in_jail, payload=payload
        )
        if kind in LASTING:
            log.info("%s: job %s, attempt %s: %s", order.origin, order.job, order.attempt, kind.value)
            self._outbox.put(report)
        else:
            self._send(report)

    def _send(self, report: Report) -> bool:
        """Hand a report to the broker; whether it took it. Passing news is dropped while the broker is away."""
        if time.monotonic() < self._quiet_until and report.kind not in LASTING:
            return False
        try:
            self._app.send_task(
                TAKE_REPORT,
                args=[to_plain(report)],
                queue=REPORTS_QUEUE,
                retry=False,
                ignore_result=True,
            )
        except (OperationalError, RedisError, OSError) as problem:
            self._quiet_until = time.monotonic() + ALIVE_EVERY * 0.9
            log.warning("The broker did not take a report (%s): %s", report.kind.value, problem)
            return False
        return True
