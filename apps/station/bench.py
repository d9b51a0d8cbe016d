"""The bench: the child process of a station in which one device's jobs are done, one after the other.

It stands apart so that whatever happens to it (a crash, lack of memory, a job that won't stop) happens to one job. It
lives as long as the other end of its socket is open and takes its jailed processes with it, however it ends.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import signal
import socket
import sys
import threading
import time
from types import FrameType

from apps.kernels.evaluation import Progress
from apps.kernels.plain import Plain, from_plain, to_plain
from apps.station.messages import Order
from apps.station.work import CannotDo, HostTrouble, Work

PROGRESS_EVERY = 0.2  # seconds; news in between is dropped unless the stage changes
JAIL_LOOK_EVERY = 0.25

log = logging.getLogger(__name__)


class Cancelled(Exception):
    """The job in hand is no longer wanted."""


class Line:
    """JSON lines both ways over the station's socket."""

    def __init__(self, connection: socket.socket) -> None:
        self._reader = connection.makefile("r", encoding="utf-8")
        self._writer = connection.makefile("w", encoding="utf-8")
        self._lock = threading.Lock()

    def send(self, kind: str, payload: Plain = None, *, in_jail: bool = False) -> None:
        """Tell the station; ends this process if the station is gone."""
        text = json.dumps({"kind": kind, "payload": payload, "in_jail": in_jail})
        try:
            with self._lock:
                self._writer.write(text + "\n")
                self._writer.flush()
        except (OSError, ValueError):
            os._exit(0)

    def receive(self) -> dict[str, Plain] | None:
        """The station's next message, or None when it is gone."""
        try:
            text = self._reader.readline()
        except OSError:
            return None
        return json.loads(text) if text.endswith("\n") else None


class Bench:
    """Does one order at a time in the main thread, while another thread listens for a cancellation."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._work = Work()
        self._cancelled = threading.Event()
        self._orders: list[Order] = []
        self._arrived = threading.Condition()
        self._busy = threading.Event()
        self._said_in_jail = False

    def run(self) -> None:
        """Serve until the station is gone."""
        threading.Thread(target=self._listen, name="station", daemon=True).start()
        threading.Thread(target=self._look_into_jail, name="jail", daemon=True).start()
        self._work.warm_up()
        self._line.send("ready")
        while True:
            with self._arrived:
                while not self._orders:
                    self._arrived.wait()
                order = self._orders.pop(0)
            self._do(order)

    def leave(self) -> None:
        """End all jailed processes and this one."""
        try:
            self._work.close()
        finally:
            os._exit(0)

    def _listen(self) -> None:
        while (message := self._line.receive()) is not None:
            if message["kind"] == "cancel":
                self._cancelled.set()
                continue
            with self._arrived:
                self._cancelled.clear()
                self._orders.append(from_plain(Order, message["payload"]))
                self._arrived.notify()
        self.leave()

    def _do(self, order: Order) -> None:
        observe = _Thinned(self)
        self._said_in_jail = False
        self._busy.set()
        try:
            kind, payload = "done", self._work.do(order, observe)
        except Cancelled:
            kind, payload = "cancelled", None
        except CannotDo as problem:
            kind, payload = "failed", {"error": str(problem)}
        except HostTrouble as problem:
            kind, payload = "broke", {"error": str(problem)}
        except Exception as problem:
            log.exception("%s: job %s broke off", order.origin, order.job)
            kind, payload = "failed", {"error": f"{type(problem).__name__}: {problem}. The station's log has more."}
        finally:
            self._busy.clear()
        self._line.send(kind, payload)

    def tell(self, progress: Progress) -> None:
        """Pass a line of news on."""
        self._say_progress(to_plain(progress))

    def check(self) -> None:
        """Raise `Cancelled` if the job in hand is no longer wanted."""
        if self._cancelled.is_set():
            raise Cancelled

    def _look_into_jail(self) -> None:
        """Say at once when foreign code begins or ends: a loss counts against a candidate only while its code ran."""
        while True:
            time.sleep(JAIL_LOOK_EVERY)
            if self._busy.is_set() and self._work.zygote.in_jail != self._said_in_jail:
                self._say_progress(None)

    def _say_progress(self, progress: Plain) -> None:
        self._said_in_jail = self._work.zygote.in_jail
        self._line.send("progress", progress, in_jail=self._said_in_jail)


class _Thinned:
    """Passes news on at a pace that people can follow."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._stage = ""
        self._told_at = 0.0

    def __call__(self, progress: Progress) -> None:
        self._bench.check()
        now = time.monotonic()
        if progress.stage != self._stage or now - self._told_at >= PROGRESS_EVERY:
            self._stage, self._told_at = progress.stage, now
            self._bench.tell(progress)


def die_with_parent() -> None:
    """Linux: be killed when the thread that started this process ends. Elsewhere the closed socket has to do."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)


def main(descriptor: int) -> None:
    """A bench at the other end of an inherited socket."""
    die_with_parent()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s bench %(message)s")
    bench = Bench(Line(socket.socket(fileno=descriptor)))

    def stop(number: int, frame: FrameType | None) -> None:
        bench.leave()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    bench.run()


if __name__ == "__main__":
    main(int(sys.argv[1]))
