"""The few Linux calls the jail needs that Python doesn't offer, through ctypes; errors become OSError with their errno."""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
import platform
import re
import struct

libc = ctypes.CDLL(None, use_errno=True)

SUPPORTED = platform.system() == "Linux" and platform.machine() == "x86_64"

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_BIND, MS_REC, MS_PRIVATE, MS_REMOUNT = 0x1000, 0x4000, 0x40000, 0x20
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

SYS_PIVOT_ROOT = 155
SYS_SECCOMP = 317
SYS_MOUNT_SETATTR = 442
SYS_LANDLOCK_CREATE = 444
SYS_LANDLOCK_ADD_RULE = 445
SYS_LANDLOCK_RESTRICT = 446

AT_RECURSIVE = 0x8000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV = 1, 2, 4

M_TRIM_THRESHOLD, M_MMAP_MAX, M_PERTURB, M_ARENA_MAX = -1, -4, -6, -8


def checked(result: int, what: str) -> int:
    """The result of a call, or the OSError its errno names."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def syscall(number: int, *arguments: object) -> int:
    """A raw system call; returns -1 with errno set on failure."""
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return int(libc.syscall(ctypes.c_long(number), *wide))


def prctl(option: int, value: int = 0) -> None:
    """`prctl(option, value, 0, 0, 0)`."""
    zero = ctypes.c_ulong(0)
    checked(libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero), f"prctl {option}")


def unshare(flags: int) -> None:
    """New namespaces for this process (and, of process ids, for its next child)."""
    checked(libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2)."""

    def encoded(text: str | None) -> bytes | None:
        return None if text is None else text.encode()

    result = libc.mount(encoded(source), target.encode(), encoded(kind), ctypes.c_ulong(flags), encoded(data))
    checked(result, f"mount {target}")


def umount(target: str) -> None:
    """Detach a mount and all below it."""
    checked(libc.umount2(target.encode(), MNT_DETACH), f"umount {target}")


class _MountAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


# Options of a mount that a remount must repeat: in a user namespace it may add to them and take none away.
_MOUNT_OPTIONS = {"nosuid": 2, "nodev": 4, "noexec": 8, "noatime": 1 << 10, "nodiratime": 1 << 11, "relatime": 1 << 21}


def mount_read_only(target: str) -> None:
    """Make a mount and all below it read-only, without set-user-id programs and device files."""
    attributes = _MountAttributes(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, 0, 0)
    pointer, size = ctypes.byref(attributes), ctypes.sizeof(attributes)
    place = ctypes.c_char_p(target.encode())
    try:
        checked(syscall(SYS_MOUNT_SETATTR, -100, place, AT_RECURSIVE, pointer, size), "mount_setattr")
    except OSError as problem:
        if problem.errno != errno.ENOSYS:
            raise
        _remount_read_only(target)


def _remount_read_only(target: str) -> None:
    """The same one by one, for kernels before 5.12."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        mounts = [line.split()[4:6] for line in file]
    for path, options in mounts:
        plain = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), path)  # as blanks are written there
        if plain == target or plain.startswith(f"{target}/"):
            kept = sum(_MOUNT_OPTIONS.get(option, 0) for option in options.split(","))
            mount(None, plain, None, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | kept)


def pivot_root(new_root: str) -> None:
    """Make `new_root` the root and detach the old one."""
    os.chdir(new_root)
    checked(syscall(SYS_PIVOT_ROOT, ctypes.c_char_p(b"."), ctypes.c_char_p(b".")), "pivot_root")
    umount(".")
    os.chdir("/")


def drop_capabilities() -> None:
    """Empty every capability set, the bounding set included where that is allowed."""
    for capability in range(64):
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break
    header = struct.pack("Ii", 0x20080522, 0)
    data = struct.pack("6I", 0, 0, 0, 0, 0, 0)
    checked(libc.capset(ctypes.c_char_p(header), ctypes.c_char_p(data)), "capset")


def effective_capabilities() -> int:
    """The capabilities this process may use now, one bit each; 0 where the kernel doesn't say."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next((int(line.split()[1], 16) for line in file if line.startswith("CapEff:")), 0)
    except OSError:
        return 0


def mallopt(parameter: int, value: int) -> None:
    """Set one of glibc's allocator parameters for this process; does nothing where the C library has none."""
    function = getattr(libc, "mallopt", None)
    if function is not None:
        function(ctypes.c_int(parameter), ctypes.c_int(value))


class _Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def read_memory(pid: int, address: int, into: ctypes.Array[ctypes.c_char] | ctypes.c_void_p, size: int) -> int:
    """Copy `size` bytes of another process's memory into a buffer; returns the bytes copied (fewer at a hole)."""
    local = _Vector(ctypes.cast(into, ctypes.c_void_p), size)
    remote = _Vector(address, size)
    one, zero = ctypes.c_ulong(1), ctypes.c_ulong(0)
    got = libc.process_vm_readv(ctypes.c_int(pid), ctypes.byref(local), one, ctypes.byref(remote), one, zero)
    return checked(int(got), f"reading memory of process {pid}")


def write_memory(pid: int, address: int, source: ctypes.Array[ctypes.c_char] | ctypes.c_void_p, size: int) -> int:
    """Copy `size` bytes into another process's memory; returns the bytes copied."""
    local = _Vector(ctypes.cast(source, ctypes.c_void_p), size)
    remote = _Vector(address, size)
    one, zero = ctypes.c_ulong(1), ctypes.c_ulong(0)
    got = libc.process_vm_writev(ctypes.c_int(pid), ctypes.byref(local), one, ctypes.byref(remote), one, zero)
    return checked(int(got), f"writing memory of process {pid}")


def same_bytes(one: ctypes.c_void_p, other: ctypes.c_void_p, size: int) -> bool:
    """Whether `size` bytes at two addresses of this process are the same."""
    return int(libc.memcmp(one, other, ctypes.c_size_t(size))) == 0


libc.process_vm_readv.restype = ctypes.c_ssize_t
libc.process_vm_writev.restype = ctypes.c_ssize_t
libc.syscall.restype = ctypes.c_long
