"""One device's desk: takes orders, has them done by its bench one at a time, and sees to it that each one ends."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from apps.kernels.jail.isolation import CODE_ROOT, SETTING
from apps.kernels.plain import Plain, to_plain
from apps.station.messages import Doing, Order, ReportKind

# How long a bench may take to do as it is told before it is made to: by its judge first, by its end second.
CANCEL_SECONDS = 2.0
END_SECONDS = 3.0
# The judge keeps the deadline itself; this is for the case that it can't.
OVERRUN_SECONDS = 30.0
START_SECONDS = 150.0
LOOK_EVERY = 0.2

log = logging.getLogger(__name__)

# Told of everything that happens to an order: order, kind, payload, in_jail.
Tell = Callable[[Order, ReportKind, Plain, bool], None]


@dataclass
class _Hand:
    """The order in hand and what is known of it."""

    order: Order
    began: float = field(default_factory=time.monotonic)
    in_jail: bool = False
    cancel_at: float | None = None


class Desk:
    """A thread of its own for one device; `put` and `cancel` may be called from any other."""

    def __init__(self, device: str, tell: Tell, environment: dict[str, str]) -> None:
        self.device = device
        self._tell = tell
        self._environment = environment
        self._orders: list[Order] = []
        self._hand: _Hand | None = None
        self._bench: BenchProcess | None = None
        self._changed = threading.Condition()
        self._leaving = False
        self._thread = threading.Thread(target=self._run, name=f"desk {device}", daemon=True)

    def start(self) -> None:
        """Begin, with a bench that warms up at once."""
        self._thread.start()

    def put(self, order: Order) -> None:
        """Have the order done after those before it. A newer attempt at the same job replaces an older one that waits."""
        with self._changed:
            if self._hand is not None and self._hand.order.job == order.job:
                if self._hand.order.attempt >= order.attempt:
                    return
                self._hand.cancel_at = self._hand.cancel_at or time.monotonic()
            self._orders = [waiting for waiting in self._orders if waiting.job != order.job]
            self._orders.append(order)
            self._changed.notify_all()

    def cancel(self, job: int, attempt: int) -> None:
        """Drop the order, or have its jail killed if it is in hand. A bench that doesn't heed is ended instead."""
        with self._changed:
            self._orders = [o for o in self._orders if (o.job, o.attempt) != (job, attempt)]
            hand = self._hand
            if hand is not None and (hand.order.job, hand.order.attempt) == (job, attempt) and hand.cancel_at is None:
                hand.cancel_at = time.monotonic()

    def doing(self) -> list[Doing]:
        """The order in hand and those that wait."""
        with self._changed:
            waiting = [Doing(self.device, order.job, order.attempt) for order in self._orders]
            hand = self._hand
        if hand is None:
            return waiting
        seconds = round(time.monotonic() - hand.began, 1)
        return [Doing(self.device, hand.order.job, hand.order.attempt, hand.in_jail, seconds), *waiting]

    def close(self) -> None:
        """End the bench and what it runs."""
        with self._changed:
            self._leaving = True
            self._changed.notify_all()
        self._thread.join(END_SECONDS + 2.0)
        self._end_bench()

    # -- the desk's own thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._start_bench()
        while True:
            with self._changed:
                while not self._orders and not self._leaving:
                    self._changed.wait()
                if self._leaving:
                    break
                self._hand = _Hand(self._orders.pop(0))
            try:
                kind, payload = self._have_done(self._hand)
                self._tell(self._hand.order, kind, payload, self._hand.in_jail)
            except Exception:
                log.exception("The desk of %s stumbled over job %s", self.device, self._hand.order.job)
                self._end_bench()
            with self._changed:
                self._hand = None
            if self._bench is None:
                self._start_bench()
        self._end_bench()

    def _start_bench(self) -> None:
        try:
            self._bench = BenchProcess(self._environment)
        except OSError as problem:
            log.error("No bench for %s: %s", self.device, problem)

    def _end_bench(self) -> None:
        if self._bench is not None:
            self._bench.end()
            self._bench = None

    def _have_done(self, hand: _Hand) -> tuple[ReportKind, Plain]:
        """Have the bench do the order in hand; how that ended."""
        if self._bench is None or not self._bench.alive:
            self._end_bench()
            self._start_bench()
        if self._bench is None:
            return ReportKind.BROKE, {"error": "no process could be started for the job"}
        self._tell(hand.order, ReportKind.STARTED, None, False)
        self._bench.send("order", to_plain(hand.order))
        told_to_cancel = False
        while True:
            if hand.cancel_at is not None and not told_to_cancel:
                self._bench.send("cancel")
                told_to_cancel = True
            verdict = self._overdue(hand)
            if verdict is not None:
                self._end_bench()
                return verdict
            for message in self._bench.messages(LOOK_EVERY):
                ended = self._heed(hand, message)
                if ended is not None:
                    return ended
            if not self._bench.alive:
                return self._bench_died(hand)

    def _heed(self, hand: _Hand, message: dict[str, Plain]) -> tuple[ReportKind, Plain] | None:
        if message["kind"] == "ready":
            return None
        if message["kind"] == "progress":
            hand.in_jail = bool(message["in_jail"])
            self._tell(hand.order, ReportKind.PROGRESS, message["payload"], hand.in_jail)
            return None
        hand.in_jail = False
        return ReportKind(message["kind"]), message["payload"]

    def _overdue(self, hand: _Hand) -> tuple[ReportKind, Plain] | None:
        now = time.monotonic()
        if self._leaving:
            return ReportKind.BROKE, {"error": "its station was stopped", "counts": False}
        if hand.cancel_at is not None and now - hand.cancel_at > CANCEL_SECONDS:
            return ReportKind.CANCELLED, None
        if now - hand.began > hand.order.deadline_seconds + OVERRUN_SECONDS:
            limit = hand.order.deadline_seconds
            return ReportKind.FAILED, {
                "error": f"It was still not over {OVERRUN_SECONDS:.0f} s after its {limit:.0f} s."
            }
        return None

    def _bench_died(self, hand: _Hand) -> tuple[ReportKind, Plain]:
        how = self._bench.end() if self._bench else "it is gone"
        self._bench = None
        log.warning("The bench of %s died under job %s: %s", self.device, hand.order.job, how)
        if hand.cancel_at is not None:
            return ReportKind.CANCELLED, None
        return ReportKind.BROKE, {"error": f"the process that did the job died: {how}"}


class BenchProcess:
    """The bench as its desk sees it."""

    def __init__(self, environment: dict[str, str]) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "apps.station.bench", str(theirs.fileno())]
        try:
            self._process = subprocess.Popen(
                command, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._socket = ours
        self._text = b""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def send(self, kind: str, payload: Plain = None) -> None:
        """Tell it something. One that is gone is noticed when it is read from."""
        data = (json.dumps({"kind": kind, "payload": payload}) + "\n").encode()
        with contextlib.suppress(OSError):
            self._socket.settimeout(10.0)
            self._socket.sendall(data)

    def messages(self, seconds: float) -> list[dict[str, Any]]:
        """What it said within the next seconds, as soon as it said anything."""
        ready, _, _ = select.select([self._socket], [], [], seconds)
        if ready:
            part = b""
            with contextlib.suppress(OSError):
                part = self._socket.recv(1 << 20)
            if not part:
                time.sleep(0.01 if not self.alive else seconds)
            self._text += part
        *lines, self._text = self._text.split(b"\n")
        return [json.loads(line) for line in lines]

    def end(self) -> str:
        """Have it end itself and its jailed processes, by force where it doesn't; how it ended."""
        self._socket.close()
        if self.alive:
            self._process.terminate()
        try:
            code = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        if code < 0:
            return f"killed by signal {-code}" + (" (out of memory?)" if code == -9 else "")
        return f"left with exit code {code}"


def bench_environment(temporary: str) -> dict[str, str]:
    """What a bench may know: where programs, caches, locks and temporary files are. The broker's address is not among it.

    Devices' lock files stay where every other judge on this machine looks for them.
    """
    names = (
        "PATH",
        "HOME",
        "LANG",
        "LC_ALL",
        "TZ",
        "XDG_CACHE_HOME",
        "PRAGMA_MEASUREMENTS",
        SETTING,
        "CXX",
        "VIRTUAL_ENV",
    )
    known = {name: os.environ[name] for name in names if name in os.environ}
    locks = os.environ.get("PRAGMA_LOCKS") or tempfile.gettempdir()
    return known | {"TMPDIR": temporary, "PRAGMA_LOCKS": locks, "PYTHONPATH": CODE_ROOT, "PYTHONUNBUFFERED": "1"}
