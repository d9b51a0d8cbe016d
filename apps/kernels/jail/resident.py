"""Which pages that it can write a process has in memory (proc_pid_pagemap(5)), and whether it could change the code it runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from apps.kernels.jail.mappings import mappings

PAGE = 4096
ENTRY = 8
PRESENT, SWAPPED = 1 << 63, 1 << 62
CHUNK = 1 << 20
ACCESS_MODE = 3  # of a descriptor's flags: 0 where it can only be read


def resident_ranges(pid: int) -> list[tuple[int, int]]:
    """Beginning and end of the writable memory that is there, in order; nothing where it can't be looked at."""
    found: list[tuple[int, int]] = []
    with contextlib.suppress(OSError), open(f"/proc/{pid}/pagemap", "rb", buffering=0) as file:
        for one in mappings(pid):
            if one.rights.startswith("rw"):
                for start, end in _present(file.fileno(), one.start, one.end):
                    if found and found[-1][1] == start:
                        found[-1] = (found[-1][0], end)
                    else:
                        found.append((start, end))
    return found


def _present(pagemap: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    for at in range(start, end, CHUNK // ENTRY * PAGE):
        pages = min(CHUNK // ENTRY, (end - at) // PAGE)
        entries = memoryview(os.pread(pagemap, pages * ENTRY, at // PAGE * ENTRY)).cast("Q")
        begun = None
        for index, entry in enumerate(entries):
            if entry & (PRESENT | SWAPPED):
                begun = index if begun is None else begun
            elif begun is not None:
                yield at + begun * PAGE, at + index * PAGE
                begun = None
        if begun is not None:
            yield at + begun * PAGE, at + len(entries) * PAGE


def changeable_code(pid: int) -> str | None:
    """A file that the process runs code of and could still write, through a mapping or a descriptor; None where there is none.

    Pages of a private mapping that it writes become its own, which is seen; what it writes to the file is not.
    """
    mapped = mappings(pid)
    code = {(one.device, one.inode): one.path for one in mapped if one.executable and one.inode}
    for one in mapped:
        if (one.device, one.inode) in code and one.rights[1] == "w" and one.rights[3] == "s":
            return one.path
    with contextlib.suppress(OSError):
        for descriptor in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with contextlib.suppress(OSError, ValueError, StopIteration):
                at = f"/proc/{pid}/fd/{descriptor}"
                status, name = os.stat(at), os.readlink(at).removesuffix(" (deleted)")  # noqa: PTH115, PTH116
                path = code.get((status.st_dev, status.st_ino))
                if path is None and name in code.values():  # a file system of layers: maps name the device below
                    path = name
                if path is not None and _flags(pid, descriptor) & ACCESS_MODE:
                    return path
    return None


def _flags(pid: int, descriptor: str) -> int:
    with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii") as file:
        return int(next(line.split()[1] for line in file if line.startswith("flags:")), 8)
