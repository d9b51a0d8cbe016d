"""What else ran on this machine's CPUs while something was timed: work of others makes a group of rounds worthless."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from apps.kernels.jail import freeze as ice

DISTURBED = 0.05  # of all cores' time; a lone busy program is 0.5 on two cores


@dataclass(frozen=True)
class _Look:
    wall: float
    machine: float
    own: float


class Bystanders:
    """Counts the CPU time that processes other than the judge's own take, from when it is made.

    `pids` are the judgement's processes, alive from first to last look. Resolution is the kernel's clock tick (10 ms).
    """

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = tuple(pids)
        self._first = self._look()

    def share(self) -> float:
        """The share of all cores' time that others took since, 0 to 1; 0 where the kernel doesn't say."""
        now = self._look()
        wall = (now.wall - self._first.wall) * (os.cpu_count() or 1)
        others = (now.machine - self._first.machine) - (now.own - self._first.own)
        return min(1.0, max(0.0, others / wall)) if wall > 0.1 else 0.0

    def _look(self) -> _Look:
        own = time.process_time()
        for pid in self._pids:
            with contextlib.suppress(OSError, ValueError, IndexError):
                own += ice.cpu_seconds(pid)
        return _Look(time.monotonic(), _machine_seconds(), own)


def _machine_seconds() -> float:
    """CPU seconds that all processes, the kernel and (as steal) other virtual machines have taken; 0 if not told."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _idle, _wait, hard, soft, steal = map(int, file.readline().split()[1:9])
        return (user + nice + system + hard + soft + steal) / os.sysconf("SC_CLK_TCK")
    return 0.0
