"""Stopping a jailed process in every thread, letting it go on, and looking at it while it stands still."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from typing import NamedTuple

FREEZE_SECONDS = 10.0
LOOK_SECONDS = 30e-6


class NotFrozen(Exception):
    """The process is gone, or a thread of it would not stop."""


def freeze(pid: int) -> None:
    """Stop every thread; returns once the kernel says that each of them stands still. Raises `NotFrozen`."""
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        raise NotFrozen("it is gone") from None
    deadline = time.monotonic() + FREEZE_SECONDS
    while True:
        states = thread_states(pid)
        if not states or "Z" in states:
            raise NotFrozen("it is gone")
        if all(state in "Tt" for state in states):
            return
        if time.monotonic() > deadline:
            raise NotFrozen(f"a thread stays in state {states}")
        time.sleep(LOOK_SECONDS)  # leaves the core to the thread that has yet to stop


def thaw(pid: int) -> None:
    """Let it go on."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def thread_states(pid: int) -> str:
    """One letter a thread, as in /proc: R running, S sleeping, T stopped, Z dead."""
    letters = []
    directory = f"/proc/{pid}/task"
    try:
        tasks = os.listdir(directory)  # noqa: PTH208 - read thousands of times a judgement
    except OSError:
        return ""
    for task in tasks:
        with contextlib.suppress(OSError, IndexError):
            descriptor = os.open(f"{directory}/{task}/stat", os.O_RDONLY)
            try:
                letters.append(os.read(descriptor, 512).rsplit(b")", 1)[1].split(None, 1)[0].decode())
            finally:
                os.close(descriptor)
    return "".join(letters)


class Turns(NamedTuple):
    """What a thread has had of the processors so far."""

    ran: int  # nanoseconds
    waited: int  # nanoseconds, for a processor
    times: int


def turns(pid: int) -> dict[int, Turns]:
    """What each thread has had of the processors so far, by its number.

    While it stands still nothing of this changes. Empty where the kernel doesn't count (CONFIG_SCHED_INFO).
    """
    found = {}
    with contextlib.suppress(OSError, ValueError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - as above
            descriptor = os.open(f"/proc/{pid}/task/{task}/schedstat", os.O_RDONLY)
            try:
                found[int(task)] = Turns(*map(int, os.read(descriptor, 128).split()))
            finally:
                os.close(descriptor)
    return found


def children(pid: int) -> tuple[int, ...]:
    """Processes that any thread of this one has started and not lost; orphans below it come back to it."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found += [int(child) for child in file.read().split()]
    return tuple(found)


def cpu_seconds(pid: int) -> float:
    """User and system time over all threads so far."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int) -> int:
    """Memory that is the process's own: anonymous pages in RAM, in bytes (0 if it is gone)."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def mapped_objects(pid: int) -> tuple[tuple[int, int, str], ...]:
    """Executable mappings: start, end, and the file's name ("" where there is none)."""
    found = []
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        for line in file:
            fields = line.split(None, 5)
            if len(fields) > 1 and "x" in fields[1]:
                start, end = (int(part, 16) for part in fields[0].split("-"))
                found.append((start, end, fields[5].strip() if len(fields) > 5 else ""))
    return tuple(found)
