"""Which pages of a memory file a process has looked at: the processor marks each page that is read, for the kernel's use.

The marks can be cleared and read from outside (CONFIG_PROC_PAGE_MONITOR), while the process stands still.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from apps.kernels.jail.mappings import mappings

FILE_PAGES = b"3"  # what clear_refs takes for: pages of mapped files only


@dataclass(frozen=True)
class Touched:
    """A mapping of a memory file: where in the file it begins, its size, and how many bytes of its pages were looked at."""

    offset: int
    size: int
    bytes: int


def forget(pid: int) -> bool:
    """Clear the marks; False where that can't be done."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/clear_refs", "wb", buffering=0) as file:
        file.write(FILE_PAGES)
        return True
    return False


def touched(pid: int, name: str) -> list[Touched]:
    """The mappings of the memory file of that name. None of them where the kernel keeps its pages in large ones."""
    found = [one for one in mappings(pid, ("Referenced", "ShmemPmdMapped")) if f"memfd:{name}" in one.path]
    if any(one.bytes.get("ShmemPmdMapped") for one in found):
        return []
    return [
        Touched(one.offset, one.end - one.start, one.bytes["Referenced"]) for one in found if "Referenced" in one.bytes
    ]
