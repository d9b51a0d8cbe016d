"""What else ran on this machine's CPUs while something was timed: work of others makes a group of rounds worthless."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

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
        self._taken = dict.fromkeys(
            pids, 0.0
        )  # seconds of each when it was seen last: one that has ended keeps what it had
        self._processors = os.sched_getaffinity(0)  # others' work elsewhere disturbs nothing here
        self._first = self._look()

    def share(self) -> float:
        """The share of all cores' time that others took since, 0 to 1; 0 where the kernel doesn't say."""
        now = self._look()
        wall = (now.wall - self._first.wall) * len(self._processors)
        others = (now.machine - self._first.machine) - (now.own - self._first.own)
        return min(1.0, max(0.0, others / wall)) if wall > 0.1 else 0.0

    def _look(self) -> _Look:
        own = time.process_time()
        self._taken = {pid: max(had, ice.processor_time(pid).all) for pid, had in self._taken.items()}
        own += sum(self._taken.values())
        return _Look(time.monotonic(), seconds_taken(self._processors), own)


def seconds_taken(processors: Collection[int], stat: Path = Path("/proc/stat")) -> float:
    """CPU seconds of these processors that all processes, the kernel and (as steal) other virtual machines have taken.

    0 where the kernel doesn't say.
    """
    taken = 0
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in stat.read_text(encoding="ascii").splitlines():
            name, *fields = line.split()
            if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) in processors:
                user, nice, system, _idle, _wait, hard, soft, steal = map(int, fields[:8])
                taken += user + nice + system + hard + soft + steal
    return taken / os.sysconf("SC_CLK_TCK")
