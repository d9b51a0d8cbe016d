"""The keeper: one process between the zygote and each jailed one. It runs nothing foreign.

It waits for the jailed process's end and reports it, answers for its forks and execs (`starts`), looks after what the
kernel doesn't bound here by itself (`_watch`), and takes the whole tree down: when the jailed process ends, when its
time is over, when the zygote is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from dataclasses import dataclass, field
from typing import Any

from apps.kernels.jail import cgroups, tree
from apps.kernels.jail.cell import Cell
from apps.kernels.jail.starts import Starts

LOOK_SECONDS = 0.2  # between looks at memory and disk in the build phase; what comes in between is the overshoot
WITHOUT_PIDFD_SECONDS = 0.02
CLEAR_SECONDS = 2.0
GRACE_SECONDS = 5.0  # beyond the wall limit, which the judge holds itself


@dataclass
class Keeper:
    """`status` leads to the judge. `events` counts kills for want of memory, -1 where no control group bounds it."""

    status: socket.socket
    pid: int
    cell: Cell
    processes: int
    listener: int
    events: int
    phase: str = "build"
    over: str = ""
    _suspect: bool = False
    _starts: Starts | None = field(default=None, repr=False)

    def keep(self) -> None:
        """Until the jailed process has ended; tells the judge how."""
        self._starts = Starts(self.listener, self._room) if self.listener >= 0 else None
        deadline = time.monotonic() + self.cell.limits.wall_seconds + GRACE_SECONDS
        next_look = time.monotonic() + LOOK_SECONDS
        waiting = self._poll()
        while (ended := self._ended()) is None:
            now = time.monotonic()
            if now >= deadline:
                self._kill("time")
            if self.phase == "build" and now >= next_look:
                self._watch()
                next_look = time.monotonic() + LOOK_SECONDS  # from its end: a full directory takes a while
            self._handle(waiting, waiting.poll(1000 * self._patience(deadline, next_look)))
        code, usage = ended
        take_down(self.processes)
        starved = self.events >= 0 and cgroups.killed_for_memory(self.events) > 0
        if starved and os.waitstatus_to_exitcode(code) == -signal.SIGKILL:
            self.over = self.over or "memory"
        cpu = usage.ru_utime + usage.ru_stime
        end = {"code": os.waitstatus_to_exitcode(code), "cpu": cpu, "rss": usage.ru_maxrss, "over": self.over}
        self._tell(end)

    # -- what happens ------------------------------------------------------------------------------------------------

    def _poll(self) -> select.poll:
        waiting = select.poll()
        waiting.register(self.status.fileno(), select.POLLIN)
        if self._starts:
            waiting.register(self._starts.descriptor, select.POLLIN)
        self._end = -1
        with contextlib.suppress(OSError, AttributeError):
            self._end = os.pidfd_open(self.pid)
            waiting.register(self._end, select.POLLIN)
        return waiting

    def _patience(self, deadline: float, next_look: float) -> float:
        until = min(deadline, next_look) if self.phase == "build" else deadline
        most = WITHOUT_PIDFD_SECONDS if self._end < 0 else 3600.0
        return min(most, max(0.0, until - time.monotonic()) + 0.001)

    def _handle(self, waiting: select.poll, ready: list[tuple[int, int]]) -> None:
        for descriptor, event in ready:
            if descriptor == self.status.fileno():
                self._hear(waiting)
            elif self._starts and descriptor == self._starts.descriptor:
                if event & select.POLLIN:
                    self._starts.answer()
                else:
                    waiting.unregister(descriptor)

    def _hear(self, waiting: select.poll) -> None:
        """The judge says that the build phase is over, or is gone: then the zygote ends this process in a moment."""
        said = self.status.recv(64)
        if not said:
            waiting.unregister(self.status.fileno())
        elif b"judged" in said:
            self.phase = "judged"
            if self._starts:
                self._starts.judged = True
            strays = self._clear()
            self._tell({"phase": self.phase, "starts_watched": self._starts is not None, "strays": strays})

    def _clear(self) -> int:
        """Kill whatever lives beside the jailed process, its own children as orphans; how many there were.

        What has left its parents is not below the jailed process any more where they share the host's process table, so
        nobody else would find it. It would not stand still with it, and could work while nobody measures.
        """
        deadline = time.monotonic() + CLEAR_SECONDS
        seen: set[int] = set()
        quiet = 0
        while quiet < 2:  # a fork that was allowed just before shows a moment later
            below = tree.descendants(os.getpid(), self.processes, living=True)
            others = [pid for pid in below if pid != self.pid]
            quiet = 0 if others else quiet + 1
            seen.update(others)
            for pid in others:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                self._kill("strays")
                break
            time.sleep(0.001)
        return len(seen)

    def _ended(self) -> tuple[int, Any] | None:
        """How the jailed process ended, or None; buries what else has ended."""
        while True:
            pid, code, usage = os.wait4(-1, os.WNOHANG)
            if pid == self.pid:
                return code, usage
            if pid == 0:
                return None

    # -- what the kernel does not bound by itself --------------------------------------------------------------------

    def _below(self) -> list[int]:
        return tree.descendants(os.getpid(), self.processes)

    def _room(self) -> int:
        return self.cell.limits.processes - len(self._below())

    def _watch(self) -> None:
        """Memory of all processes together where no control group bounds it, and disk where it is the host's own."""
        limits, light = self.cell.limits, self.cell.mode == "light"
        if self.events >= 0 and not light:
            return
        below = self._below()
        if self.events < 0 and tree.private_bytes(below, self.processes) > limits.memory_bytes:
            if self._suspect and tree.proportional_bytes(below, self.processes) > limits.memory_bytes:
                self._kill("memory")
            self._suspect = True  # a fork about to exec counts its parent's pages for a moment
        else:
            self._suspect = False
        if light and self._disk(below) > limits.disk_bytes:
            self._kill("disk")

    def _disk(self, below: list[int]) -> int:
        place = self.cell.place
        return tree.directory_bytes(place) + tree.deleted_bytes(below, self.processes, place)

    def _kill(self, over: str) -> None:
        self.over = self.over or over
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def _tell(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the judge is gone; the zygote sees to the rest
            self.status.sendall(json.dumps(message).encode() + b"\n")


def take_down(processes: int) -> None:
    """Kill and reap every process that is left below this one, whatever it forked meanwhile.

    `processes` is /proc as it was opened before anything was separated: a keeper shares the jail's mounts, and the
    jail's own /proc knows nobody outside.
    """
    while True:
        for child in tree.children_of(os.getpid(), processes):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
