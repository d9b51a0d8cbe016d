"""Starts everything, starts anew what dies and says why, stops everything. Nothing it starts outlives it."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from types import FrameType

from apps.kernels.plain import Plain
from apps.station.health import Health, serve_health
from pragma_web.supervisor.child import Child
from pragma_web.supervisor.logfile import LogFile
from pragma_web.supervisor.processes import Installation, Process, embedded_broker, product

LOOK_EVERY = 0.1
BROKER_SECONDS = 20.0
STOP_SECONDS = 10.0


class BrokerMissing(Exception):
    """The broker did not come up; the message says where to look."""


class Supervisor:
    """All processes of one machine. `run` returns when it has been told to stop and has stopped everything."""

    def __init__(self, here: Installation) -> None:
        self._here = here
        self._logs = here.var / "log"
        self._own_log = LogFile(self._logs / "supervisor.log")
        self._broker = self._child(process) if (process := embedded_broker(here)) else None
        self._children = [self._child(process) for process in product(here)]
        self._once: Child | None = None
        self._stamp: Path | None = None
        self._stop = threading.Event()

    def run(self) -> None:
        """Until Ctrl-C or SIGTERM. Raises `BrokerMissing` if there is no broker to begin with."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._told_to_stop)
        serve_health(str(self._here.run / "supervisor.sock"), self.health)
        try:
            self._start_broker()
            while not self._stop.is_set():
                for child in self._all:
                    self._tend(child)
                self._look_at_once()
                self._stop.wait(LOOK_EVERY)
        finally:
            self.stop()

    def then_once(self, process: Process, stamp: Path) -> None:
        """Run this once beside the others, and show what it says when it is over; `stamp` is made if it went well."""
        self._once, self._stamp = self._child(process), stamp

    def stop(self) -> None:
        """End all processes, the broker last: what they have to say on leaving needs it."""
        began = time.monotonic()
        leaving = [*self._children, *([self._once] if self._once else [])]
        for child in leaving:
            child.terminate()
        for child in leaving:
            child.finish(STOP_SECONDS - (time.monotonic() - began))
        if self._broker is not None:
            self._broker.terminate()
            self._broker.finish(STOP_SECONDS)
        self.say("Stopped.")

    def health(self) -> Health:
        """What `manage.py health` shows of the supervisor: all that should run does."""
        down = [child.process.name for child in self._all if not child.running]
        facts: dict[str, Plain] = {child.process.name: _facts(child) for child in self._all}
        return Health("supervisor", ok=not down, detail=f"down: {', '.join(down)}" if down else "", facts=facts)

    def say(self, text: str) -> None:
        """One line for whoever watches, and for the log."""
        print(text, flush=True)
        self._own_log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n".encode())

    @property
    def _all(self) -> list[Child]:
        return [*([self._broker] if self._broker else []), *self._children]

    def _child(self, process: Process) -> Child:
        return Child(process, LogFile(self._logs / f"{process.name}.log"))

    def _tend(self, child: Child) -> None:
        if how := child.bury():
            self.say(f"{child.process.name}: {how}. See {_short(child.log.path)}")
        if child.start_at is not None and time.monotonic() >= child.start_at:
            try:
                child.start(self._here.base)
            except OSError as problem:
                child.start_at = time.monotonic() + 5.0
                self.say(f"{child.process.name} can't be started: {problem}")

    def _look_at_once(self) -> None:
        if self._once is None:
            return
        if self._once.popen is None:
            self._once.start(self._here.base)
        elif not self._once.running:
            said = self._once.log.path.read_text(errors="replace").strip().splitlines()
            self.say(f"First run: {said[-1] if said else 'nothing was said'}")
            if self._stamp is not None and self._once.popen.returncode == 0:
                self._stamp.touch()
            self._once = None

    def _start_broker(self) -> None:
        if self._broker is None:
            return
        limit = time.monotonic() + BROKER_SECONDS
        while not self._stop.is_set():
            self._tend(self._broker)
            if self._broker.running and self._broker.process.ready():
                return
            if time.monotonic() > limit:
                raise BrokerMissing(f"The broker does not come up. See {_short(self._broker.log.path)}")
            self._stop.wait(0.02)

    def _told_to_stop(self, number: int, frame: FrameType | None) -> None:
        if self._stop.is_set():
            return
        self._stop.set()
        os.write(1, b"\nStopping ...\n")


def _facts(child: Child) -> Plain:
    pid = child.popen.pid if child.popen is not None else None
    return {"running": child.running, "pid": pid, "restarts": child.restarts, "last_death": child.last_death}


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
