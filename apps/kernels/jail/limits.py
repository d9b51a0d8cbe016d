"""What a jailed process may use: memory, processor time, files, processes, wall clock."""

from __future__ import annotations

import contextlib
import resource
from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """Bounds of one jailed process and its children.

    `memory_bytes` bounds address space; torch alone maps about one GiB. `file_bytes` bounds one file, `disk_bytes` the
    private file system (where namespaces give one). `cpu_seconds` is processor time over all threads.
    """

    memory_bytes: int = 8 * GIB
    cpu_seconds: int = 600
    wall_seconds: float = 300.0
    processes: int = 256
    files: int = 512
    file_bytes: int = 512 << 20
    disk_bytes: int = GIB


def apply(limits: Limits) -> None:
    """Set this process's resource limits; what a host already bounds more tightly stays."""
    wanted = (
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_FSIZE, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.files),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, limits.processes),
        (resource.RLIMIT_MEMLOCK, 8 << 20),
        (resource.RLIMIT_MSGQUEUE, 0),
    )
    for which, value in wanted:
        _, hard = resource.getrlimit(which)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (bound, bound))
