"""Where a frozen process's threads wake up: each that works on a processor of its own.

A stopped process is woken in all its threads at once, by a judge that is itself running on one of the processors. A thread
that finds its own processor taken by the judge is put on another, beside one that was to have it alone; with two processors
the call then takes twice as long, or a tick of the scheduler longer. Which process that happens to, and how often, is luck
that lasts as long as the process does. So the judge says where each thread wakes; it may move as soon as it runs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

BUSY = 0.1  # of the busiest thread's time: one that had less of the last window did no work in it


@contextlib.contextmanager
def awake_apart(pid: int, recent: Mapping[int, int]) -> Iterator[None]:
    """Inside, each thread of `pid` (stopped) that worked may run on one processor only; afterwards on those it might before.

    Wake them inside. `recent` is what each thread had of the processors in the last window, in nanoseconds. The first thread
    gets the first processor and the others the next ones, so that both sides of a comparison lie alike. Threads that have
    chosen their processors themselves keep them; where more work than there are processors nothing is said at all.
    """
    ours = os.sched_getaffinity(0)
    free = sorted(ours)
    working = that_worked(pid, recent)
    moved: list[int] = []
    if len(free) > 1 and len(working) <= len(free):
        for thread, processor in zip(working, free, strict=False):
            with contextlib.suppress(OSError):
                if os.sched_getaffinity(thread) == ours:
                    os.sched_setaffinity(thread, {processor})
                    moved.append(thread)
    try:
        yield
    finally:
        for thread in moved:
            with contextlib.suppress(OSError):
                os.sched_setaffinity(thread, ours)


def that_worked(pid: int, recent: Mapping[int, int]) -> list[int]:
    """The process's first thread, then the others that worked in the last window, in the order of their numbers."""
    most = max(recent.values(), default=0)
    return [pid, *sorted(thread for thread, had in recent.items() if thread != pid and had > BUSY * most)]
