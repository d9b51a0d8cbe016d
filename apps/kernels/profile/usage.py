"""What a running process has used so far, from /proc: page faults, processor time, involuntary switches.

Read from outside, so that nothing the process says of itself is believed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.profile.runner import ProfiledRunner

_TICK = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class Usage:
    """Totals of one process: faults and switches counted, times in seconds; `threads` has processor time by thread."""

    minor_faults: int
    involuntary_switches: int
    user: float
    system: float
    threads: dict[int, float]


@dataclass(frozen=True)
class UsagePerCall:
    """What a call costs beside arithmetic. `system_share` is of processor time.

    `parallelism` is the processor time of all threads over that of the busiest one: how many work, whether or not other
    programs took processors from them meanwhile. `busiest_share` is that thread's processor time over the call's time:
    well under 1 means that the call waits, or that others took its processor.
    """

    seconds: float
    processor_seconds: float
    minor_faults: float
    involuntary_switches: float
    system_share: float
    parallelism: float
    busiest_share: float


def read_usage(pid: int, proc: Path = Path("/proc")) -> Usage:
    """The process's totals now. Raises `ProcessLookupError` where it is gone."""
    try:
        stat = (proc / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        raise ProcessLookupError(f"process {pid} is gone") from None
    # The name in parentheses may hold anything, spaces and parentheses too: what follows the last one is fields 3 on.
    fields = stat.rpartition(")")[2].split()
    minor_faults, user, system = int(fields[7]), int(fields[11]) / _TICK, int(fields[12]) / _TICK
    switches, threads = 0, {}
    for task in (proc / str(pid) / "task").iterdir():
        try:
            status = (task / "status").read_text(errors="replace")
            schedule = (task / "schedstat").read_text()
        except OSError:
            continue  # a thread that has just ended
        found = re.search(r"^nonvoluntary_ctxt_switches:\s+(\d+)", status, re.M)
        switches += int(found[1]) if found else 0
        threads[int(task.name)] = int(schedule.split()[0]) / 1e9 if schedule.strip() else 0.0
    return Usage(minor_faults, switches, user, system, threads)


def usage_per_call(runner: ProfiledRunner, calls: int) -> UsagePerCall:
    """Runs so many calls and divides what they used by their number.

    System time is counted in ticks (10 ms usually): fewer than some thirty ticks of processor time say little.
    """
    before = read_usage(runner.pid)
    seconds = runner.call(calls)
    after = read_usage(runner.pid)
    ticked = (after.user + after.system) - (before.user + before.system)
    spent = [used - before.threads.get(thread, 0.0) for thread, used in after.threads.items()]
    busiest, total = max(spent, default=0.0), sum(spent)
    return UsagePerCall(
        seconds=seconds / calls,
        processor_seconds=total / calls,
        minor_faults=(after.minor_faults - before.minor_faults) / calls,
        involuntary_switches=(after.involuntary_switches - before.involuntary_switches) / calls,
        system_share=(after.system - before.system) / ticked if ticked > 0 else 0.0,
        parallelism=total / busiest if busiest > 0 else 1.0,
        busiest_share=busiest / seconds if seconds > 0 else 0.0,
    )
