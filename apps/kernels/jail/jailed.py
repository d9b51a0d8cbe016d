"""One jailed process as the judge sees it: talk to it, freeze it, look into its memory and directory, end it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from apps.kernels.jail import freeze as ice
from apps.kernels.jail.channel import Channel, ChannelBroken, ChannelTimeout
from apps.kernels.jail.limits import Limits, says_out_of_memory
from apps.kernels.plain import Plain
from apps.kernels.temporary import remove_tree

OUTPUT_KEPT = 64 << 10
LOCK_SECONDS = 20.0
PAUSES_MS = (0, 1, 2, 3, 4)  # between looks at a process that is watched; a window lasts some milliseconds


class JailFailed(Exception):
    """The jail itself could not be set up: the host's fault, never the candidate's."""


class IsolationTooWeak(JailFailed):
    """The host could jail, but not well enough for what it requires; the message says what to do."""


@dataclass(frozen=True)
class Ended:
    """How a jailed process ended: exit code or signal, whether for lack of memory or time, CPU seconds, peak KiB.

    `over` names the limit for which its keeper or the kernel killed it: memory, disk or time; "" for none.
    """

    code: int | None
    signal: int | None
    out_of_memory: bool
    timed_out: bool
    cpu_seconds: float = 0.0
    peak_kib: int = 0
    over: str = ""

    @property
    def words(self) -> str:
        """The end in words a person understands."""
        if self.timed_out:
            return "ran out of time"
        if self.out_of_memory:
            return "ran out of memory"
        if self.over == "disk":
            return "filled its private directory"
        if self.signal:
            return f"was killed by {signal_name(self.signal)}"
        return f"left with exit code {self.code}"


def signal_name(number: int) -> str:
    """SIGSEGV; real-time signals have a number only."""
    return (
        signal.Signals(number).name
        if number in signal.valid_signals() and number < signal.SIGRTMIN
        else f"signal {number}"
    )


class Jailed:
    """A jailed process. `pid` is its id in the judge's own process namespace."""

    def __init__(
        self,
        keeper: int,
        channel: socket.socket,
        status: socket.socket,
        output: int,
        place: str,
        mode: str,
        limits: Limits,
    ) -> None:
        self.keeper = keeper
        self.pid = 0
        self.starts_watched = False  # whether its keeper refuses exec and fork, known once its build has ended
        self.channel = Channel(channel)
        self.limits = limits
        self.ended: Ended | None = None
        self._status = status
        self._status_text = b""
        self._output_fd = output
        self._output = bytearray()
        self._place = place
        self._mode = mode
        self._waiting: select.poll | None = None
        self._timed_out = False
        self._last: dict[str, Plain] = {}
        self._closed = False
        self._deadline = time.monotonic() + limits.wall_seconds
        os.set_blocking(output, False)

    def begin(self, payload: Plain) -> None:
        """Wait until it is locked in, then hand it what to do. Raises `JailFailed`."""
        try:
            first = self._status_line(LOCK_SECONDS)
            self.pid = int(first["pid"]) if "pid" in first else 0
            locked = self.channel.receive(LOCK_SECONDS) if self.pid else {}
        except (ChannelBroken, ChannelTimeout, ValueError) as problem:
            said = self.output
            self.close()
            raise JailFailed(f"the jail did not close: {problem or 'no answer'} {said}".strip()) from None
        if not locked.get("locked"):
            self.close()
            raise JailFailed(str(first.get("failed") or locked.get("error") or "the jail did not close"))
        try:
            self.channel.send(payload)
        except ChannelBroken as problem:
            ended = self.wait(LOCK_SECONDS)
            self.close()
            raise JailFailed(f"what was jailed {ended.words} before it was told what to do: {problem}") from None

    def end_build(self) -> int:
        """No exec and no fork from here on, whatever the process has made of itself: its keeper refuses them.

        Gives the number of processes that still lived beside it; they are killed.
        Where the kernel asks no keeper (`starts_watched` is false) only the process's own filter holds it. If it has
        ended meanwhile, `wait` says so.
        """
        with contextlib.suppress(ChannelBroken, ChannelTimeout, OSError):
            self._status.sendall(b"judged")
            self._last = self._status_line(10.0)
            self.starts_watched = bool(self._last.get("starts_watched"))
            return int(self._last.get("strays", 0))
        return 0

    # -- talking ---------------------------------------------------------------------------------------------------

    def send(self, message: Plain) -> None:
        """Send it one JSON object. Raises `ChannelBroken` if it is gone."""
        self.channel.send(message)

    def receive(self, timeout: float | None = None) -> dict[str, Plain]:
        """Its next JSON object. Raises `ChannelTimeout` or `ChannelBroken`; what it printed is drained meanwhile."""
        self._look_meanwhile(timeout)
        self.wait_readable(timeout)
        return self.channel.receive(10.0)

    def receive_bytes(self, timeout: float) -> bytes:
        """Its next byte string, as `receive`. Quick: what the judge times ends with it."""
        waiting = self._waiting
        if waiting is None:
            waiting = self._waiting = select.poll()
            waiting.register(self.channel.fileno(), select.POLLIN)
            waiting.register(self._output_fd, select.POLLIN)
        deadline = time.monotonic() + timeout
        self._look_meanwhile(timeout)
        if (self.channel.fileno(), select.POLLIN) not in waiting.poll(timeout * 1000):
            self.wait_readable(max(0.0, deadline - time.monotonic()))
        return self.channel.receive_bytes(timeout)

    def _look_meanwhile(self, timeout: float | None) -> None:
        """While somebody watches it: look at it after a random while, again and again, until it speaks.

        By this thread, which waits anyway: another one would come to look when this one begins to wait, as windows begin.
        """
        look = ice.watcher(self.pid)
        limit = self._deadline if timeout is None else min(self._deadline, time.monotonic() + timeout)
        while look and time.monotonic() < limit and not self.channel.has_something(random.choice(PAUSES_MS)):
            self.drain()
            look()

    @property
    def has_spoken(self) -> bool:
        """Whether something it has said waits to be received. However many descriptors the judge has: `select` ends at 1024."""
        return self.channel.has_something() and bool(self.channel.socket.recv(1, socket.MSG_PEEK))

    def ask(self, message: Plain, timeout: float | None = None) -> dict[str, Plain]:
        """Send, then receive."""
        self.send(message)
        return self.receive(timeout)

    def wait_readable(self, timeout: float | None) -> None:
        """Wait for a message, draining what is printed. Raises `ChannelTimeout` at the time-out or the wall limit."""
        limit = self._deadline if timeout is None else min(self._deadline, time.monotonic() + timeout)
        waiting = select.poll()
        waiting.register(self.channel.fileno(), select.POLLIN)
        waiting.register(self._output_fd, select.POLLIN)
        while True:
            left = limit - time.monotonic()
            if left <= 0:
                self._timed_out = True
                raise ChannelTimeout
            ready = dict(waiting.poll(left * 1000))
            if self._output_fd in ready:
                self.drain()
                if ready[self._output_fd] & select.POLLHUP and not ready[self._output_fd] & select.POLLIN:
                    waiting.unregister(self._output_fd)
            if self.channel.fileno() in ready:
                return

    @property
    def output(self) -> str:
        """The end of what it printed on stdout and stderr."""
        self.drain()
        return bytes(self._output).decode("utf-8", "replace")

    def drain(self) -> None:
        """Take what it has printed out of the pipe, so that it can go on printing; keep the last 64 KiB."""
        if self._closed:
            return
        for _ in range(64):
            try:
                part = os.read(self._output_fd, 1 << 16)
            except OSError:
                return
            if not part:
                return
            self._output += part
            del self._output[:-OUTPUT_KEPT]

    # -- its directory -----------------------------------------------------------------------------------------------

    @property
    def work(self) -> Path:
        """Its private directory, as the judge can read it while it lives. Never follow a symlink in there."""
        return Path(f"/proc/{self.pid}/root/tmp") if self._mode != "light" else Path(self._place)

    def path(self, inside: str) -> Path:
        """A path as the jailed process names it, as the judge can read it while it lives."""
        return Path(f"/proc/{self.pid}/root") / inside.lstrip("/") if self._mode != "light" else Path(inside)

    @property
    def work_inside(self) -> str:
        """Its private directory as it names it itself."""
        return "/tmp" if self._mode != "light" else self._place  # noqa: S108 - the jail's own

    # -- its end -----------------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill it and everything it started."""
        if self.pid and self.ended is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float = 10.0) -> Ended:
        """Wait for its end (killing it at the time-out) and say how it ended."""
        if self.ended is not None:
            return self.ended
        try:
            end = self._end_line(timeout)
        except ChannelTimeout:
            self._timed_out = True
            self.kill()
            end = self._last_words()
        except (ChannelBroken, ValueError):
            end = {}
        code, over = end.get("code"), str(end.get("over", ""))
        cpu = float(end.get("cpu", 0.0))
        spent = code == -signal.SIGXCPU or (code == -signal.SIGKILL and cpu >= self.limits.cpu_seconds)
        self.ended = Ended(
            code=code if isinstance(code, int) and code >= 0 else None,
            signal=-code if isinstance(code, int) and code < 0 else None,
            out_of_memory=over == "memory" or self._looks_out_of_memory(code),
            timed_out=self._timed_out or over == "time" or spent,
            cpu_seconds=cpu,
            peak_kib=int(end.get("rss", 0)),
            over=over,
        )
        return self.ended

    def _end_line(self, timeout: float) -> dict[str, Plain]:
        """What the keeper says of the end; it may have come while something else was awaited."""
        return self._last if "code" in self._last else self._status_line(timeout)

    def _last_words(self) -> dict[str, Plain]:
        try:
            return self._end_line(5.0)
        except (ChannelBroken, ChannelTimeout, ValueError):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.keeper, signal.SIGKILL)
            return {}

    def _looks_out_of_memory(self, code: Plain) -> bool:
        return code == 72 or says_out_of_memory(self.output)

    def close(self) -> None:
        """End it if it lives, and let go of everything that was its."""
        if self._closed:
            return
        self.kill()
        if self.pid:
            self.wait(10.0)
        else:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.keeper, signal.SIGKILL)
        self.drain()
        self._closed = True
        self.channel.close()
        self._status.close()
        os.close(self._output_fd)
        remove_tree(self._place)

    def __enter__(self) -> Jailed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _status_line(self, timeout: float) -> dict[str, Plain]:
        deadline = time.monotonic() + timeout
        while b"\n" not in self._status_text:
            left = deadline - time.monotonic()
            if left <= 0:
                raise ChannelTimeout
            self._status.settimeout(left)
            try:
                part = self._status.recv(4096)
            except TimeoutError:
                raise ChannelTimeout from None
            except OSError as problem:
                raise ChannelBroken(str(problem)) from None
            if not part:
                raise ChannelBroken("its keeper is gone")
            self._status_text += part
        line, _, self._status_text = self._status_text.partition(b"\n")
        end: dict[str, Plain] = json.loads(line)
        return end
