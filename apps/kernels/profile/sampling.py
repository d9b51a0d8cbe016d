"""Where a process spends its time: program counters sampled from outside, by the kernel's clock events or by stopping it.

The kernel's software clock event (`perf_event_open`, no hardware counter needed, no tool either) costs next to nothing.
Where it is closed, as in many containers and for most users of Debian and Ubuntu, the process is stopped for some
microseconds each 2 ms, and the kernel says where each of its threads stands.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.jail import freeze as ice

_SYSCALL = {"x86_64": 298, "aarch64": 241}
_SOFTWARE, _TASK_CLOCK = 1, 1
_SAMPLE_IP, _SAMPLE_THREAD = 1, 2
_DISABLED, _INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 0, 1 << 1, 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 8
_ENABLE, _DISABLE = 0x2400, 0x2401
_RECORD_SAMPLE, _MODE_MASK, _MODE_KERNEL = 9, 7, 1
_PAGES = 16
_HEAD, _DATA_OFFSET, _DATA_SIZE = 1024, 1040, 1048
_MOST_EVENTS = 1024
PERIOD_NS = 1_000_000
FINE_NS = 100_000  # for threads that live for less than the usual period; felt, by a twentieth
KERNEL = -1  # stands for every address inside the kernel


class NoSampling(RuntimeError):
    """The process can't be sampled here; the message says why."""


class ProgramCounters:
    """The sampled addresses of one interval, `KERNEL` where the processor was in the kernel, and how they were had.

    `threads` are the ids of the threads they were sampled in, one for each address. `period` is the processor time of a
    sample in seconds, 0 where that isn't known.
    """

    def __init__(self, source: str, period: float = 0.0) -> None:
        self.source = source
        self.period = period
        self.addresses: list[int] = []
        self.threads: list[int] = []

    def take(self) -> None:
        """Take in what was sampled so far, so that there is room for more. Otherwise that is done at the end."""

    def seconds_missed(self, used: ice.ProcessorTime) -> float:
        """Processor time that no sample taken so far stands for, of what the process had of it; 0 where that isn't known."""
        return 0.0

    def of_thread(self, thread: int) -> list[int]:
        """The addresses that one thread was sampled at."""
        return [address for address, of in zip(self.addresses, self.threads, strict=True) if of == thread]


@contextmanager
def sampled(pid: int) -> Iterator[ProgramCounters]:
    """Samples all threads the process has now, while the block runs; the addresses are there when it ends.

    Raises `NoSampling` on entry where neither way is open.
    """
    with ExitStack() as stack:
        try:
            counters = stack.enter_context(sampled_by_clock(pid))
        except NoSampling as refused:
            try:
                counters = stack.enter_context(sampled_by_stopping(pid))
            except NoSampling as also:
                raise NoSampling(f"{refused}; {also}") from None
        yield counters


# ---- the kernel's clock events -------------------------------------------------------------------------------------


@contextmanager
def sampled_by_clock(pid: int, period_ns: int = PERIOD_NS, *, every_starter: bool = False) -> Iterator[ProgramCounters]:
    """As `sampled`, one sample each `period_ns` of a thread's processor time, by the kernel's clock events or not at all.

    Threads that the first one starts meanwhile are sampled too where the kernel lets them be, and those that these start; with
    `every_starter` those that any thread starts. A thread that lives for less than a period is hardly ever seen: see
    `seconds_missed`. Raises `NoSampling` on entry.
    """
    with ExitStack() as stack:
        starters = _threads(pid) if every_starter else [pid]
        newcomers = stack.enter_context(_with_newcomers(starters, period_ns))
        others = [thread for thread in _threads(pid) if not newcomers or thread not in starters]
        opened = [stack.enter_context(_ring(thread, period_ns)) for thread in others]
        rings = [*newcomers, *(one for one in opened if one is not None)]
        counters = _ClockSamples(rings, period_ns / 1e9)
        for ring in rings:
            _ioctl(ring.descriptor, _ENABLE)
        try:
            yield counters
        finally:
            for ring in rings:
                _ioctl(ring.descriptor, _DISABLE)
            counters.take()


@dataclass(frozen=True)
class _Ring:
    """An event and its buffer of samples; `in_kernel` where it samples within the kernel as well."""

    descriptor: int
    memory: mmap.mmap
    in_kernel: bool


class _ClockSamples(ProgramCounters):
    """What the kernel's clock events leave in their buffers."""

    def __init__(self, rings: Sequence[_Ring], period: float) -> None:
        super().__init__("perf_event_open, task clock", period)
        self._rings = rings
        self._in_kernel = all(ring.in_kernel for ring in rings)

    def take(self) -> None:
        for ring in self._rings:
            for address, thread in drain_ring(ring.memory):
                self.addresses.append(address)
                self.threads.append(thread)

    def seconds_missed(self, used: ice.ProcessorTime) -> float:
        """Of threads that lived for less than a period, and of those that the kernel hands no event down to."""
        return (used.all if self._in_kernel else used.user) - self.period * len(self.addresses)


@contextmanager
def _with_newcomers(threads: Sequence[int], period_ns: int) -> Iterator[list[_Ring]]:
    """These threads and all that they start from now on, one event a processor for each; empty where that can't be had.

    The kernel gives an event that is inherited a buffer only where the event is bound to one processor.
    """
    with ExitStack() as stack:
        try:
            places = [(thread, processor) for thread in threads for processor in sorted(os.sched_getaffinity(thread))]
            if len(places) > _MOST_EVENTS:
                places = []
            opened = [stack.enter_context(_ring(thread, period_ns, at, _INHERIT)) for thread, at in places]
        except (NoSampling, OSError):
            stack.close()
            opened = []
        yield [one for one in opened if one is not None]


@contextmanager
def _ring(thread: int, period_ns: int, processor: int = -1, more: int = 0) -> Iterator[_Ring | None]:
    """An event on one thread with its buffer of samples; kernel addresses where they may be seen.

    None for a thread that has just ended, as those of an OpenMP pool do when the number of threads changes.
    """
    descriptor = _open_event(thread, period_ns, more | _DISABLED | _EXCLUDE_HYPERVISOR, processor)
    in_kernel = descriptor >= 0
    if descriptor < 0:
        flags = more | _DISABLED | _EXCLUDE_HYPERVISOR | _EXCLUDE_KERNEL
        descriptor = _open_event(thread, period_ns, flags, processor)
    if descriptor < 0 and ctypes.get_errno() == errno.ESRCH:
        yield None
        return
    if descriptor < 0:
        raise NoSampling(f"perf_event_open: {os.strerror(ctypes.get_errno())}")
    try:
        with _buffer(descriptor) as memory:
            yield _Ring(descriptor, memory, in_kernel)
    finally:
        os.close(descriptor)


def _buffer(descriptor: int) -> mmap.mmap:
    try:
        return mmap.mmap(descriptor, (1 + _PAGES) * mmap.PAGESIZE)
    except (OSError, ValueError) as problem:
        raise NoSampling(f"perf_event_open: no buffer: {problem}") from None


def _open_event(thread: int, period_ns: int, flags: int, processor: int) -> int:
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise NoSampling(f"perf_event_open is not known on {platform.machine()}")
    # The first published layout of perf_event_attr, 64 bytes: type, size, config, period, sample and read format, flags.
    sample = _SAMPLE_IP | _SAMPLE_THREAD
    attributes = struct.pack("=IIQQQQQIIQ", _SOFTWARE, 64, _TASK_CLOCK, period_ns, sample, 0, flags, 0, 0, 0)
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    return int(_libc().syscall(number, buffer, thread, processor, -1, _CLOSE_ON_EXEC))


def drain_ring(ring: mmap.mmap | bytearray) -> Iterator[tuple[int, int]]:
    """Address and thread of the sample records that a buffer holds; afterwards it has room for as many again."""
    head, tail = struct.unpack_from("=QQ", ring, _HEAD)
    offset, size = struct.unpack_from("=QQ", ring, _DATA_OFFSET)
    if size == 0:  # kernels before 4.1 leave it out
        offset, size = mmap.PAGESIZE, _PAGES * mmap.PAGESIZE
    first, end = tail % size, tail % size + min(head - tail, size)  # it begins again where it ends
    data = bytes(ring[offset + first : offset + min(end, size)]) + bytes(ring[offset : offset + max(0, end - size)])
    struct.pack_into("=Q", ring, _HEAD + 8, head)
    position = 0
    while position + 8 <= len(data):
        kind, mode, length = struct.unpack_from("=IHH", data, position)
        if length < 8:
            return
        if kind == _RECORD_SAMPLE and position + 24 <= len(data):
            address, _, thread = struct.unpack_from("=QII", data, position + 8)
            yield KERNEL if mode & _MODE_MASK == _MODE_KERNEL else address, thread
        position += length


# ---- stopping ------------------------------------------------------------------------------------------------------


@contextmanager
def sampled_by_stopping(pid: int) -> Iterator[ProgramCounters]:
    """As `sampled`, by stopping the process for a moment each 2 ms or so while it is waited for, or not at all."""
    counters = ProgramCounters("stopped each 2 ms")
    _refuse_closed(pid)

    def look() -> None:
        with suppress(ice.NotFrozen):
            for thread, address in ice.glance(pid).items():
                counters.addresses.append(KERNEL if address is None else address)
                counters.threads.append(thread)

    with ice.watched(pid, look):
        yield counters


def _refuse_closed(pid: int) -> None:
    try:
        Path(f"/proc/{pid}/syscall").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        _threads(pid)  # says where the process is gone
        raise NoSampling("stopping: this kernel doesn't say where a stopped thread stands") from None
    except OSError as problem:
        raise NoSampling(f"stopping: where a thread stands may not be read: {problem.strerror}") from None


# ---- shared --------------------------------------------------------------------------------------------------------


def _threads(pid: int) -> list[int]:
    try:
        return [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        raise NoSampling(f"process {pid} is gone") from None


def _ioctl(descriptor: int, request: int) -> None:
    try:
        fcntl.ioctl(descriptor, request, 0)
    except OSError as problem:
        if problem.errno != errno.ESRCH:
            raise NoSampling(f"perf event: {problem.strerror}") from None


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
