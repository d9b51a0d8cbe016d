"""Control groups: memory and tasks of a whole jail bounded by the kernel, where this process may make groups.

Version 1 (a hierarchy for each controller) and version 2. A group lies below the judge's own, or beside it where version 2
forbids that a group with processes has groups below it and the one above is delegated to this user.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.jail.limits import Limits

PREFIX = "pragma-jail"
REMOVE_SECONDS = 0.3


@dataclass(frozen=True)
class Parents:
    """Directories in which groups can be made: for memory, for the number of tasks ("" where not), and of which version."""

    memory: str = ""
    tasks: str = ""
    version: int = 0

    @property
    def directories(self) -> tuple[str, ...]:
        """Each of them once."""
        return tuple(dict.fromkeys(path for path in (self.memory, self.tasks) if path))


@dataclass(frozen=True)
class Group:
    """One jail's group. `entrances` are descriptors of its lists of processes, `events` of its out-of-memory count (or -1)."""

    directories: tuple[str, ...]
    entrances: tuple[int, ...]
    events: int

    def close(self) -> None:
        """Let go of the descriptors; the directories are removed once nothing is left in them."""
        for descriptor in (*self.entrances, self.events):
            if descriptor >= 0:
                os.close(descriptor)


NO_GROUP = Group((), (), -1)


@functools.cache
def parents() -> Parents:
    """Where this process may make groups, found out by making one and moving a process into it."""
    wanted = _version_2() or _version_1()
    if not wanted.directories:
        return Parents()
    memory = wanted.memory if _works(wanted.memory, "memory") else ""
    tasks = wanted.tasks if _works(wanted.tasks, "tasks") else ""
    return Parents(memory, tasks, wanted.version if memory or tasks else 0)


def make(limits: Limits, zygote: int, number: int) -> Group:
    """A group for a zygote's jail under these limits; `NO_GROUP` where none can be made (any more)."""
    found = parents()
    directories: list[str] = []
    entrances: list[int] = []
    events = -1
    try:
        for parent in found.directories:
            directory = Path(parent) / f"{_prefix()}-{zygote}-{number}"
            directory.mkdir()
            directories.append(str(directory))
            if parent == found.memory:
                _limit_memory(directory, limits.memory_bytes)
                watched = "memory.events" if found.version == 2 else "memory.oom_control"
                events = os.open(directory / watched, os.O_RDONLY | os.O_CLOEXEC)
            if parent == found.tasks:
                (directory / "pids.max").write_text(str(limits.processes))
            entrances.append(os.open(directory / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
    except OSError:
        Group((), tuple(entrances), events).close()
        remove(directories)
        return NO_GROUP
    return Group(tuple(directories), tuple(entrances), events)


def enter(entrances: list[int]) -> None:
    """Move this process into its group and let go of the door."""
    for descriptor in entrances:
        os.write(descriptor, b"0")
        os.close(descriptor)


def killed_for_memory(events: int) -> int:
    """How many processes of the group the kernel has killed for want of memory."""
    with contextlib.suppress(OSError, ValueError):
        for line in os.pread(events, 4096, 0).decode().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def remove(directories: list[str] | tuple[str, ...]) -> None:
    """Remove empty groups, waiting a moment for their last processes to be gone."""
    deadline = time.monotonic() + REMOVE_SECONDS
    for directory in directories:
        while True:
            try:
                Path(directory).rmdir()
            except FileNotFoundError:
                pass
            except OSError:
                if time.monotonic() < deadline:
                    time.sleep(0.005)
                    continue
            break


def sweep() -> None:
    """Kill and remove what zygotes that are gone have left, if they lived among this process's own process ids."""
    left = []
    for parent in parents().directories:
        for directory in Path(parent).glob(f"{_prefix()}-*"):
            zygote = directory.name.removeprefix(f"{_prefix()}-").partition("-")[0]
            if zygote.isdigit() and not Path(f"/proc/{zygote}").exists():
                left.append(str(directory))
                _kill_all(directory)
    remove(left)


def _prefix() -> str:
    """Names of groups say whose process ids they hold: the hierarchy may be shared with other containers."""
    try:
        whose = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - a magic link
    except OSError:
        whose = ""
    return f"{PREFIX}-{''.join(filter(str.isdigit, whose)) or 0}"


def _kill_all(directory: Path) -> None:
    with contextlib.suppress(OSError):
        for pid in map(int, (directory / "cgroup.procs").read_text().split()):
            if pid > 0:  # 0 stands for one of another namespace
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def _limit_memory(directory: Path, limit: int) -> None:
    if (directory / "memory.max").exists():
        (directory / "memory.max").write_text(str(limit))
        with contextlib.suppress(OSError):
            (directory / "memory.swap.max").write_text("0")
        return
    (directory / "memory.limit_in_bytes").write_text(str(limit))
    with contextlib.suppress(OSError):  # not where the kernel doesn't count swap
        (directory / "memory.memsw.limit_in_bytes").write_text(str(limit))


def _own_groups() -> dict[str, str]:
    """The group of this process by controller; "" is version 2's."""
    found = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                found[controller] = path
    return found


def _mounted(kind: str, controller: str = "") -> tuple[str, str] | None:
    """Where a hierarchy is mounted, and which group its mount shows as root."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text().splitlines():
            first, _, last = line.partition(" - ")
            fields, (found, _, options, *_) = first.split(), last.split()
            if found == kind and (not controller or controller in options.split(",")):
                return fields[4], fields[3]
    return None


def _directory(kind: str, controller: str = "") -> Path | None:
    mounted, own = _mounted(kind, controller), _own_groups().get(controller)
    if mounted is None or own is None:
        return None
    point, root = mounted
    inside = own.removeprefix(root) if root != "/" else own
    directory = Path(point) / inside.lstrip("/")
    return directory if directory.is_dir() else Path(point)


def _version_2() -> Parents | None:
    own = _directory("cgroup2")
    if own is None:
        return None
    for directory in (own, own.parent):
        try:
            given = (directory / "cgroup.subtree_control").read_text().split()
        except OSError:
            continue
        if "memory" in given:
            return Parents(str(directory), str(directory) if "pids" in given else "", 2)
    return None


def _version_1() -> Parents:
    memory, tasks = _directory("cgroup", "memory"), _directory("cgroup", "pids")
    return Parents(str(memory or ""), str(tasks or ""), 1)


def _works(parent: str, name: str) -> bool:
    """Whether a group can be made there and a process moved into it."""
    if not parent:
        return False
    directory = Path(parent) / f"{PREFIX}-trial-{os.getpid()}-{time.monotonic_ns()}-{name}"
    try:
        directory.mkdir()
        limit = "pids.max" if name == "tasks" else "memory.max"
        limit = limit if (directory / limit).exists() else "memory.limit_in_bytes"
        (directory / limit).write_text("1073741824" if name == "memory" else "64")
        with subprocess.Popen(["/bin/sleep", "5"], env={}) as mover:
            try:
                (directory / "cgroup.procs").write_text(str(mover.pid))
            finally:
                mover.kill()
    except OSError:
        return False
    finally:
        remove([str(directory)])
    return True
