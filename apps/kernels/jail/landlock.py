"""Landlock: which files a jailed process may touch at all, held by the kernel without any privilege (Linux 5.13+).

From ABI 4 it closes TCP, from ABI 6 signals and abstract sockets to processes outside the jail.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Sequence
from pathlib import Path

from apps.kernels.jail.syscalls import (
    SYS_LANDLOCK_ADD_RULE,
    SYS_LANDLOCK_CREATE,
    SYS_LANDLOCK_RESTRICT,
    checked,
    syscall,
)

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
REMOVE_DIR, REMOVE_FILE = 1 << 4, 1 << 5
MAKE_CHAR, MAKE_DIR, MAKE_REG, MAKE_SOCK, MAKE_FIFO, MAKE_BLOCK, MAKE_SYM = (1 << bit for bit in range(6, 13))
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
READING = EXECUTE | READ_FILE | READ_DIR
OF_A_FILE = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
WORKING = (
    READING | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE
)


def abi() -> int:
    """The kernel's Landlock version, 0 where it has none."""
    return max(0, syscall(SYS_LANDLOCK_CREATE, 0, 0, 1))


def _handled(version: int) -> int:
    rights = (1 << 13) - 1
    for since, right in ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)):
        if version >= since:
            rights |= right
    return rights


def restrict(read_only: Sequence[str], writable: Sequence[str], devices: Sequence[str] = ()) -> int:
    """Leave this process only these paths; returns the ABI in force (0: the kernel has no Landlock, nothing changed)."""
    version = abi()
    if version == 0:
        return 0
    handled = _handled(version)
    network = 3 if version >= 4 else 0  # bind and connect of TCP
    scoped = 3 if version >= 6 else 0  # abstract sockets and signals
    size = 8 if version < 4 else 16 if version < 6 else 24
    attributes = ctypes.create_string_buffer(struct.pack("QQQ", handled, network, scoped)[:size], size)
    ruleset = checked(syscall(SYS_LANDLOCK_CREATE, ctypes.byref(attributes), size, 0), "landlock_create_ruleset")
    for paths, rights in ((read_only, READING), (writable, WORKING), (devices, READ_FILE | WRITE_FILE)):
        for path in paths:
            _allow(ruleset, path, rights & handled)
    checked(syscall(SYS_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")
    os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        anchor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what isn't there needs no rule
    allowed = rights if Path(path).is_dir() else rights & OF_A_FILE
    rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, anchor), 12)
    checked(syscall(SYS_LANDLOCK_ADD_RULE, ruleset, 1, ctypes.byref(rule), 0), f"landlock_add_rule {path}")
    os.close(anchor)
