"""What is below a process: read from /proc as it was opened before anything was separated."""

from __future__ import annotations

import contextlib
import errno
import os

PAGE = os.sysconf("SC_PAGE_SIZE")
DEEPEST, MOST_FILES = 64, 20_000


def read(processes: int, name: str) -> str:
    """A file below /proc, empty where it is gone."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=processes)
    except OSError:
        return ""
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file, contextlib.suppress(OSError):
        return file.read()
    return ""


def listed(processes: int, name: str) -> list[str]:
    """The entries of a directory below /proc, none where it is gone."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=processes)
    except OSError:
        return []
    try:
        return os.listdir(descriptor)  # noqa: PTH208 - a descriptor, not a path
    except OSError:
        return []
    finally:
        os.close(descriptor)


def children_of(pid: int, processes: int) -> list[int]:
    """The processes whose parent this one is."""
    found = []
    for name in os.listdir(processes):
        if name.isdigit():
            fields = read(processes, f"{name}/stat").rpartition(")")[2].split()
            if len(fields) > 1 and int(fields[1]) == pid:
                found.append(int(name))
    return found


def descendants(pid: int, processes: int, *, living: bool = False) -> list[int]:
    """Every process below this one; with `living` those alone that are not dead and unburied."""
    parents: dict[int, list[int]] = {}
    dead = set()
    for name in os.listdir(processes):
        if name.isdigit():
            fields = read(processes, f"{name}/stat").rpartition(")")[2].split()
            if len(fields) > 1:
                parents.setdefault(int(fields[1]), []).append(int(name))
                if fields[0] in "ZX":
                    dead.add(int(name))
    found, wave = [], [pid]
    while wave:
        wave = [child for parent in wave for child in parents.get(parent, ())]
        found += wave
    return [one for one in found if one not in dead] if living else found


def tasks_of_user(user: int, processes: int) -> int:
    """How many threads a user has, all processes together."""
    count = 0
    for name in os.listdir(processes):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(name, dir_fd=processes).st_uid == user:
                    count += len(listed(processes, f"{name}/task"))
    return count


def private_bytes(pids: list[int], processes: int) -> int:
    """Memory that is these processes' own, a page counted as often as it is theirs alone or shared by a fork."""
    total = 0
    for pid in pids:
        fields = read(processes, f"{pid}/statm").split()
        if len(fields) > 2:
            total += (int(fields[1]) - int(fields[2])) * PAGE
    return total


def proportional_bytes(pids: list[int], processes: int) -> int:
    """The same with pages that forks share counted once; slow, so only for a second look."""
    total = 0
    for pid in pids:
        for line in read(processes, f"{pid}/smaps_rollup").splitlines():
            if line.startswith("Pss_Anon:"):
                total += int(line.split()[1]) << 10
    return total


def directory_bytes(place: str) -> int:
    """Bytes on disk below a directory that hostile code fills meanwhile; endless where it holds too much to be counted.

    Nothing is followed. More than 20 000 files, or directories more than 64 deep, count as endless.
    """
    total = count = 0
    stack: list[tuple[str, int]] = [(place, 0)]
    while stack:
        directory, depth = stack.pop()
        if depth > DEEPEST:
            return 1 << 62
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    count += 1
                    if count > MOST_FILES:
                        return 1 << 62
                    with contextlib.suppress(OSError):
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            stack.append((entry.path, depth + 1))
        except OSError as problem:
            if problem.errno == errno.ENAMETOOLONG:
                return 1 << 62
    return total


def deleted_bytes(pids: list[int], processes: int, place: str) -> int:
    """Bytes of files below `place` that are deleted but still open."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        for number in listed(processes, f"{pid}/fd"):
            with contextlib.suppress(OSError):
                name = os.readlink(f"{pid}/fd/{number}", dir_fd=processes)
                if name.startswith(place + "/") and name.endswith(" (deleted)"):
                    info = os.stat(f"{pid}/fd/{number}", dir_fd=processes)
                    found[info.st_dev, info.st_ino] = info.st_blocks * 512
    return sum(found.values())
