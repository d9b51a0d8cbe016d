"""Outputs that were made before they were asked for: in `prepare()`, one for each call to come, all but filled.

Memory that held an output is poisoned before it is given back, but what never held one can't be known beforehand. Whoever
answers from a stock takes other memory for each call, and memory that was there before it began; an allocator takes the
same again and again, or new pages; a candidate's own intermediate results take turns with its outputs, but there are so many
of them and no more. So the memory that outputs have lain in is added up, and once it is more than windows
take turns with, what a process has in memory before a window is held against where its outputs lie after it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from apps.kernels.jail.resident import PAGE, resident_ranges
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.windows import Window

# Windows whose outputs may all lie apart: a few are alive at a time, and the heap gives them what intermediate results left.
TURNS = 12
LOOKS, ENOUGH = 16, 13  # windows that are looked at, and those of them that must be answered from a stock
RULE = "answered beforehand"

Ranges = list[tuple[int, int]]


class Stock:
    """Where the outputs of a runner's windows have lain so far."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._known: Ranges = []
        self._largest = 0  # bytes of outputs that a window has had at most
        self._looks, self._found = 0, 0
        self._before: Ranges | None = None

    def look(self, window: Window) -> None:
        """After a window, while the process stands still; what it has then it has before the next one, too.

        Raises `CandidateFailed` where outputs lie in memory that was filled for them before.
        """
        own = [(one.address, one.end) for one in window.own if one.spec.bytes]
        total = sum(end - start for start, end in own)
        if self._before is not None:
            new = [part for one in own for part in without(one, self._known)]
            there = sum(overlap(part, self._before) for part in new)
            self._found += there > total / 2
            self._before = None
        self._largest = max(self._largest, total + PAGE)
        self._known = merged([*self._known, *own])
        if self._found >= ENOUGH:
            words = (
                "its outputs lie in memory that no output lay in before and that was filled before the call, other memory "
                f"each time ({self._found} windows of {self._looks}): allocate outputs in forward"
            )
            raise CandidateFailed("rejected", words, RULE)
        if self._looks < LOOKS and sum(end - start for start, end in self._known) > TURNS * self._largest:
            self._looks += 1
            self._before = resident_ranges(self._pid)


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The same memory in order, in as few ranges as may be."""
    found: Ranges = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def without(one: tuple[int, int], known: Sequence[tuple[int, int]]) -> Ranges:
    """The parts of a range that lie in none of `known`, which are in order and apart."""
    at, end = one
    left: Ranges = []
    for start, stop in known[max(0, bisect_right(known, (at, at)) - 1) :]:
        if start >= end:
            break
        if stop > at:
            if start > at:
                left.append((at, start))
            at = stop
    return [*left, (at, end)] if at < end else left


def overlap(one: tuple[int, int], known: Sequence[tuple[int, int]]) -> int:
    """Bytes of a range that lie in `known`, which are in order and apart."""
    return one[1] - one[0] - sum(end - start for start, end in without(one, known))
