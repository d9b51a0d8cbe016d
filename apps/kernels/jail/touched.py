"""Which pages of a memory file a process has looked at: the processor marks each page that is read, for the kernel's use.

The marks can be cleared and read from outside (CONFIG_PROC_PAGE_MONITOR), while the process stands still.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass

FILE_PAGES = b"3"  # what clear_refs takes for: pages of mapped files only
_MAPPING = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S+ ([0-9a-f]+) \S+ \d+\s*(.*)$")


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
    found: list[Touched] = []
    mapping = None
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as file:
        for line in file:
            if (match := _MAPPING.match(line)) is not None:
                start, end, offset = (int(match[part], 16) for part in (1, 2, 3))
                mapping = (offset, end - start) if f"memfd:{name}" in match[4] else None
            elif mapping is not None and line.startswith("Referenced:"):
                found.append(Touched(*mapping, 1024 * int(line.split()[1])))
            elif mapping is not None and line.startswith("ShmemPmdMapped:") and line.split()[1] != "0":
                return []
    return found
