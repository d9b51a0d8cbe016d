"""One process under the supervisor: started on a leash, its output kept, started anew with growing patience."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from pragma_web.supervisor.logfile import LogFile
from pragma_web.supervisor.processes import Process

LEASH = str(Path(__file__).with_name("leash.py"))
# The first death is mended at once; a process that keeps dying is given time, and forgiven after a good while.
PAUSES = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
FORGIVEN_AFTER = 60.0


@dataclass
class Child:
    """`process` as it runs now. All its methods belong to the supervisor's main thread: the leash is tied to it."""

    process: Process
    log: LogFile
    popen: subprocess.Popen[bytes] | None = None
    deaths: int = 0
    restarts: int = 0
    started_at: float = 0.0
    start_at: float | None = 0.0
    last_death: str = ""
    _told: bool = field(default=False, repr=False)

    def start(self, base: Path) -> None:
        """Start it now."""
        self.log.write(f"--- {self.process.name} started at {time.strftime('%Y-%m-%d %H:%M:%S')}\n".encode())
        self.popen = subprocess.Popen(
            [sys.executable, "-S", "-E", LEASH, str(os.getpid()), *self.process.command],
            cwd=base,
            env=self.process.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=self.process.files,
        )
        assert self.popen.stdout is not None
        self.log.follow(self.popen.stdout)
        self.started_at, self.start_at = time.monotonic(), None

    @property
    def running(self) -> bool:
        """Whether it lives."""
        return self.popen is not None and self.popen.poll() is None

    def bury(self) -> str | None:
        """If it has died since the last look: how, and when it is to be started anew is set."""
        if self.popen is None or self.popen.poll() is None:
            return None
        self.last_death = how_it_ended(self.popen.returncode)
        if time.monotonic() - self.started_at > FORGIVEN_AFTER:
            self.deaths = 0
        pause = PAUSES[min(self.deaths, len(PAUSES) - 1)]
        self.deaths += 1
        self.restarts += 1
        self.start_at = time.monotonic() + pause
        self.popen = None
        return f"{self.last_death}; starting it anew" + (f" in {pause:.0f} s" if pause else "")

    def terminate(self) -> None:
        """Ask it to leave."""
        if self.popen is not None and self.popen.poll() is None:
            self.popen.terminate()

    def finish(self, seconds: float) -> None:
        """Wait for it to leave, then make it, with all it started in its session."""
        if self.popen is None:
            return
        try:
            self.popen.wait(max(0.0, seconds))
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        try:
            os.killpg(self.popen.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return


def how_it_ended(code: int) -> str:
    """The end in words."""
    if code < 0:
        try:
            return f"killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"killed by signal {-code}"
    return "left" if code == 0 else f"left with exit code {code}"
