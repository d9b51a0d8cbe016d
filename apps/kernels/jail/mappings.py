"""What a process has mapped, and how its pages there stand, as the kernel lists it (proc_pid_maps(5), proc_pid_smaps(5))."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mapped:
    """One mapping: addresses, rights (`r-xp`), where in the file it begins, the file's device, inode and name ("": none).

    `bytes` holds what was asked for by the kernel's names (`Referenced`), as many bytes of its pages as are so.
    """

    start: int
    end: int
    rights: str
    offset: int
    device: int
    inode: int
    path: str
    bytes: dict[str, int] = field(default_factory=dict)

    @property
    def executable(self) -> bool:
        """Whether code may run there."""
        return "x" in self.rights


def mappings(pid: int | str, wanted: Collection[str] = ()) -> list[Mapped]:
    """All mappings of a process ("self": this one), with the counts `wanted` of each; counting takes the kernel longer.

    Those that were read so far where it is gone.
    """
    found: list[Mapped] = []
    listed = f"/proc/{pid}/{'smaps' if wanted else 'maps'}"
    with contextlib.suppress(OSError), open(listed, encoding="utf-8", errors="replace") as file:
        for line in file:
            if not line[0].isupper():  # the names of counts begin so, addresses don't
                addresses, rights, offset, device, inode, *path = line.split(None, 5)
                start, end = (int(part, 16) for part in addresses.split("-"))
                numbers = int(offset, 16), os.makedev(*(int(part, 16) for part in device.split(":"))), int(inode)
                found.append(Mapped(start, end, rights, *numbers, path[0].strip() if path else ""))
            elif (name := line.partition(":")[0]) in wanted:
                found[-1].bytes[name] = 1024 * int(line.split()[1])
    return found
