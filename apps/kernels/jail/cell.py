"""Locking one process in: what a jailed fork does to itself before any foreign code runs."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from apps.kernels.jail import landlock, limits, namespaces, seccomp, starts, syscalls
from apps.kernels.jail.limits import Limits

MODES = ("root", "user", "light")
LIGHT_PROC = ("/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm/overcommit_memory")


@dataclass(frozen=True)
class Cell:
    """How to lock in: `mode` is root, user or light; `place` a host directory of its own; `owner` the user to become.

    In light mode an `owner` below 0 leaves the user as it is; `others` are tasks that the kernel counts along with the
    jail's (see `limits.apply`).
    """

    mode: str
    place: str
    owner: int
    read_only: tuple[str, ...]
    limits: Limits
    perturb: int = 0
    others: int = 0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"no way to jail is called {self.mode!r}")

    @property
    def work(self) -> str:
        """The private directory as the jailed process names it."""
        return self.place if self.mode == "light" else namespaces.WORK


def set_environment(cell: Cell) -> None:
    """An environment with nothing in it but what compilers and Python need."""
    os.environ.clear()
    os.environ.update(
        PATH="/usr/local/bin:/usr/bin:/bin",
        HOME=cell.work,
        TMPDIR=cell.work,
        USER="pragma",
        LANG="C.UTF-8",
    )


def set_allocator(perturb: int) -> None:
    """One heap that is never given back, for reference and candidate alike.

    glibc maps every block over 32 MiB anew and gives it back after each call; the page faults then cost more than most
    kernels. `perturb` fills new memory with its complement (0 leaves it as it comes).
    """
    syscalls.mallopt(syscalls.M_MMAP_MAX, 0)
    syscalls.mallopt(syscalls.M_TRIM_THRESHOLD, -1)
    if perturb:
        syscalls.mallopt(syscalls.M_PERTURB, perturb)


def lock_in(cell: Cell, keeper: int) -> None:
    """Everything between the fork and foreign code. Raises OSError where the host can't do what the mode asks.

    `keeper` is a socket on which the keeper is handed the say over exec and fork, and which is closed then.
    """
    has_proc = True
    if cell.mode != "light":
        disk, owner = cell.limits.disk_bytes, _owner_inside(cell)
        has_proc = namespaces.build_root(cell.place, cell.read_only, disk, owner)
    os.chdir(cell.work)
    os.umask(0o077)
    set_environment(cell)
    set_allocator(cell.perturb)
    limits.apply(cell.limits, cell.others)
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    if cell.mode == "root" or (cell.mode == "light" and cell.owner >= 0):
        os.setgroups([])
        os.setresgid(cell.owner, cell.owner, cell.owner)
        os.setresuid(cell.owner, cell.owner, cell.owner)
    if os.geteuid() == 0 or cell.mode == "user":
        syscalls.drop_capabilities()
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)  # changing user cleared it, and the judge reads this memory
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, 9)  # cleared by the same change
    own_proc = ("/proc",) if has_proc and cell.mode != "light" else LIGHT_PROC
    readable = (*namespaces.SYSTEM, *namespaces.SETTINGS, namespaces.PROCESSORS, *own_proc, *cell.read_only)
    landlock.restrict(readable, (cell.work,), namespaces.DEVICES)
    if syscalls.SUPPORTED:
        seccomp.close_dangerous(os.getpid() if cell.mode == "light" else None)
        _hand_over_starts(keeper)
    os.close(keeper)


def _hand_over_starts(keeper: int) -> None:
    listener = seccomp.watch_starts() if starts.supported() else None
    if listener is not None:
        with socket.socket(fileno=os.dup(keeper)) as end:
            socket.send_fds(end, [b"."], [listener])
        os.close(listener)


def _owner_inside(cell: Cell) -> int:
    return namespaces.NOBODY if cell.mode == "user" else cell.owner
