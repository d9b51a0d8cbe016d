"""Stopping a jailed process in every thread, letting it go on, and looking at it while it stands still."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from apps.kernels.jail.mappings import mappings

FREEZE_SECONDS = 10.0
LOOK_SECONDS = 30e-6
CPUCLOCK_SCHED = 2  # what a process's clock counts (linux/posix-timers.h)
CHANGED = " (changed)"  # see `mapped_objects`
STOPPED = ("T", "t")  # by a signal, by a tracer
_watchers: dict[int, Callable[[], None]] = {}


class NotFrozen(Exception):
    """The process is gone, or a thread of it would not stop."""


class Still(NamedTuple):
    """When a process was seen to stand still (perf_counter_ns)."""

    called: int  # its first thread
    all: int  # each of them: later by what looking at each takes, a millisecond with sixteen
    worked: int  # nanoseconds that one of the threads which had not stopped at the first look worked on at most


def freeze(pid: int) -> Still:
    """Stop every thread; returns once the kernel says that each of them stands still. Raises `NotFrozen`.

    A thread that is in a system call first goes on to its end, which may be long after the others.
    """
    try:
        os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        raise NotFrozen("it is gone") from None
    deadline = time.monotonic() + FREEZE_SECONDS
    first = 0
    late: dict[int, int] | None = None  # what threads had had that had not stopped at the first look
    while True:
        if not first and _state(pid, pid) in STOPPED:
            first = time.perf_counter_ns()
        states = dict(_states(pid))
        if states.get(pid, "Z") == "Z":  # another thread is dead for a moment when it ends
            raise NotFrozen("it is gone")
        if all(state in STOPPED for state in states.values()) and _are_off_the_processors(pid):
            now = time.perf_counter_ns()
            worked = max((_turns(pid, task).ran - ran for task, ran in (late or {}).items()), default=0)
            return Still(first or now, now, worked)
        if late is None:
            late = {task: _turns(pid, task).ran for task, state in states.items() if state not in STOPPED}
        if time.monotonic() > deadline:
            raise NotFrozen(f"it does not stand still: its threads are in states {''.join(states.values())}")
        time.sleep(LOOK_SECONDS)  # leaves the core to the thread that has yet to stop


def _are_off_the_processors(pid: int) -> bool:
    """Whether no thread of a process that is said to be stopped has still to leave its processor; waits for those that do.

    A thread says that it is stopped some instructions before it gives its processor away, and a hypervisor that takes the
    processor in between makes milliseconds of them. The kernel waits for it before it tells where a thread stands
    (task_current_syscall and wait_task_inactive in its sources); who may not ask believes the first word.
    """
    for task in _tasks(pid):
        with contextlib.suppress(OSError):
            if _syscall(pid, task)[:1] == [b"running"]:
                return False
    return True


@contextlib.contextmanager
def watched(pid: int, look: Callable[[], None]) -> Iterator[None]:
    """While the block runs, whoever waits for what the process says calls `look` every so often (`Jailed.receive`)."""
    _watchers[pid] = look
    try:
        yield
    finally:
        _watchers.pop(pid, None)


def watcher(pid: int) -> Callable[[], None] | None:
    """What is to be called while the process is waited for; None where nobody watches it."""
    return _watchers.get(pid)


def glance(pid: int) -> dict[int, int | None]:
    """Stop what runs for a moment: for each thread that was running, its program counter; None within a system call.

    Empty where the process stands still or waits. Raises `NotFrozen`.
    """
    running = [task for task, state in _states(pid) if state == "R"]
    if not running:
        return {}
    try:
        freeze(pid)
        return {task: counter for task in running for counter in _program_counter(pid, task)}
    finally:
        thaw(pid)


def _program_counter(pid: int, task: int) -> Iterator[int | None]:
    """Of a thread that stands still, from /proc/PID/task/TID/syscall (proc_pid_syscall(5)); nothing where it is gone."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = _syscall(pid, task)
        if fields[0] != b"running":
            yield int(fields[-1], 16) if fields[0] == b"-1" else None


def _syscall(pid: int, task: int) -> list[bytes]:
    """What proc_pid_syscall(5) says of a thread: `running` alone while it is on a processor."""
    return _read(f"/proc/{pid}/task/{task}/syscall").split()


def thaw(pid: int) -> None:
    """Let it go on."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def thread_states(pid: int) -> str:
    """One letter a thread, as in /proc: R running, S sleeping, T stopped, Z dead."""
    return "".join(state for _, state in _states(pid))


def _states(pid: int) -> list[tuple[int, str]]:
    return [(task, state) for task in _tasks(pid) if (state := _state(pid, task))]


def _tasks(pid: int) -> list[int]:
    """The numbers of its threads; none where it is gone."""
    try:
        return [int(task) for task in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208 - thousands of times a judgement
    except OSError:
        return []


def _state(pid: int, task: int) -> str:
    """A thread's letter; "" where it is gone."""
    with contextlib.suppress(OSError, IndexError):
        stat = _read(f"/proc/{pid}/task/{task}/stat")
        return stat.rsplit(b")", 1)[1].split(None, 1)[0].decode()
    return ""


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 512)
    finally:
        os.close(descriptor)


class Turns(NamedTuple):
    """What a thread has had of the processors so far."""

    ran: int  # nanoseconds
    times: int


NO_TURNS = Turns(0, 0)


def turns(pid: int) -> dict[int, Turns]:
    """What each thread has had of the processors so far, by its number.

    While it stands still nothing of this changes; what it has waited for a processor may, where the kernel (6.12 and later)
    moves a sleeper that it has not taken off its queue yet. Empty where the kernel doesn't count (CONFIG_SCHED_INFO).
    """
    return {task: had for task in _tasks(pid) if (had := _turns(pid, task)) != NO_TURNS}


def _turns(pid: int, task: int) -> Turns:
    with contextlib.suppress(OSError, ValueError):
        ran, _waited, times = map(int, _read(f"/proc/{pid}/task/{task}/schedstat").split())
        return Turns(ran, times)
    return NO_TURNS


def since(before: Mapping[int, Turns], now: Mapping[int, Turns]) -> str:
    """What threads have had since, in words; empty where nothing has changed."""
    never = Turns(0, 0)
    changed = [thread for thread in sorted({*before, *now}) if before.get(thread) != now.get(thread)]
    return "; ".join(_had(thread, before.get(thread, never), now.get(thread)) for thread in changed)


def _had(thread: int, before: Turns, now: Turns | None) -> str:
    if now is None:
        return f"thread {thread} has ended"
    return f"thread {thread}: {(now.ran - before.ran) / 1000:.0f} µs in {now.times - before.times} turns"


def children(pid: int) -> tuple[int, ...]:
    """Processes that any thread of this one has started and not lost; orphans below it come back to it."""
    found: list[int] = []
    for task in _tasks(pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            found += [int(child) for child in file.read().split()]
    return tuple(found)


class ProcessorTime(NamedTuple):
    """Seconds of the processors that a process has had, in all of its threads, those that have ended as well."""

    all: float
    user: float

    def since(self, before: ProcessorTime) -> ProcessorTime:
        """What was added."""
        return ProcessorTime(self.all - before.all, self.user - before.user)


def processor_time(pid: int) -> ProcessorTime:
    """So far. All of it by the process's own clock, to the nanosecond; what it had as a user in hundredths of a second.

    Nothing where the process is gone.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        whole = time.clock_gettime((~pid << 3) | CPUCLOCK_SCHED)
        user = int(_read(f"/proc/{pid}/stat").rsplit(b")", 1)[1].split()[11])
        return ProcessorTime(whole, user / os.sysconf("SC_CLK_TCK"))
    return ProcessorTime(0.0, 0.0)


def resident_bytes(pid: int) -> int:
    """Memory that is the process's own: anonymous pages in RAM, in bytes (0 if it is gone)."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) * 1024
    return 0


def mapped_objects(pid: int) -> tuple[tuple[int, int, str], ...]:
    """Executable mappings: start, end, and the file's name ("" where there is none).

    `CHANGED` follows the name where the process has pages of its own there: they hold what it has written, not the file.
    """
    return tuple(
        (
            one.start,
            one.end,
            one.path + CHANGED if one.path.startswith("/") and one.bytes.get("Anonymous") else one.path,
        )
        for one in mappings(pid, ("Anonymous",))
        if "x" in one.rights
    )
