"""What a jailed process may use: memory, processor time, files, processes, wall clock."""

from __future__ import annotations

import contextlib
import resource
from dataclasses import dataclass

GIB = 1 << 30
CPU_GRACE_SECONDS = 2
OUT_OF_MEMORY = ("can't allocate memory", "std::bad_alloc", "MemoryError", "Cannot allocate memory")


def says_out_of_memory(text: str) -> bool:
    """Whether these are the words of a program (Python, torch, C++, a shell) that got no more memory."""
    return any(words in text for words in OUT_OF_MEMORY)


@dataclass(frozen=True)
class Limits:
    """Bounds of one jailed process and its children.

    `memory_bytes` bounds the address space of each process (torch alone maps about one GiB) and the memory of all of them
    together. `file_bytes` bounds one file, `disk_bytes` the private directory. `cpu_seconds` is processor time over all
    threads of a process.
    """

    memory_bytes: int = 8 * GIB
    cpu_seconds: int = 600
    wall_seconds: float = 300.0
    processes: int = 256
    files: int = 512
    file_bytes: int = 512 << 20
    disk_bytes: int = GIB

    @classmethod
    def computing(cls, memory_bytes: int, seconds: float, threads: int) -> Limits:
        """Of a process that computes with so many threads for `seconds`: each of them takes processor time all the while."""
        return cls(
            memory_bytes=memory_bytes,
            wall_seconds=seconds,
            cpu_seconds=int(seconds * threads) + 60,
            processes=256 + 16 * threads,
        )


def apply(limits: Limits, others: int = 0) -> None:
    """Set this process's resource limits; what a host already bounds more tightly stays.

    `others` are tasks outside the jail that the kernel counts along, where the jail shares its user with them.
    """
    wanted = (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.files),
        (resource.RLIMIT_CORE, 1),  # see seccomp.RLIMIT_CORE
        (resource.RLIMIT_NPROC, limits.processes + others),
        (resource.RLIMIT_SIGPENDING, 1024 + others),
        (resource.RLIMIT_NICE, 0),
        (resource.RLIMIT_RTPRIO, 0),
        (resource.RLIMIT_MEMLOCK, 8 << 20),
        (resource.RLIMIT_MSGQUEUE, 0),
    )
    for which, value in wanted:
        _, hard = resource.getrlimit(which)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (bound, bound))
    seconds = limits.cpu_seconds  # a signal that says why, and some seconds later, if that was ignored, the end
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + CPU_GRACE_SECONDS))
