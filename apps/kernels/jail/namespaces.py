"""A root of its own for a jailed process: new namespaces, and a file system made of nothing but what it needs.

Two ways: `root` (the judge has CAP_SYS_ADMIN: real namespaces, then another user) and `user` (a user namespace, where
the kernel lets ordinary users have one). Where neither works the jail does without (`light`).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence
from pathlib import Path

from apps.kernels.jail import syscalls
from apps.kernels.jail.syscalls import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_RDONLY, MS_REC, mount

WORK = "/tmp"  # noqa: S108 - inside the jail, where /tmp is its own
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random", "/dev/full")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime")
PROCESSORS = "/sys/devices/system/cpu"
NOBODY = 65534


def _mounts_of_this_process() -> str:
    """The identity of the mount namespace this process lives in, empty where the kernel doesn't show it."""
    try:
        return os.readlink("/proc/self/ns/mnt")  # noqa: PTH115 - a magic link
    except OSError:
        return ""


_FIRST_MOUNTS = _mounts_of_this_process()  # the host's: whoever imports this has not separated yet

SEPARATE = (
    syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS | syscalls.CLONE_NEWPID
)


def separate_as_root() -> None:
    """New mount, network, IPC, host-name and process namespaces, by privilege."""
    syscalls.unshare(SEPARATE)


def separate_as_user() -> None:
    """The same inside a new user namespace, in which this process is nobody and owns nothing outside."""
    user, group = os.geteuid(), os.getegid()
    syscalls.unshare(syscalls.CLONE_NEWUSER | SEPARATE)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{NOBODY} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{NOBODY} {group} 1")


def build_root(place: str, read_only: Sequence[str], disk_bytes: int, owner: int) -> bool:
    """Build a root at `place` and move into it; must run as the first process of a new process namespace.

    `read_only` are bound at their own names. Returns whether /proc could be mounted (some containers don't let it).
    """
    if os.getpid() != 1 or _mounts_of_this_process() == _FIRST_MOUNTS:
        # Going on would take the root away from every process of this machine.
        raise OSError(errno.EPERM, "a root is built in a mount namespace of its own only")
    os.umask(0o022)  # whatever the judge's own: another user must find its way through what is made here
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount("tmpfs", place, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,mode=755")
    root = Path(place)
    covered = [path for path in read_only if Path(WORK) in Path(path).parents]
    for path in (*SYSTEM, *SETTINGS, *read_only, PROCESSORS):
        if path not in covered:
            _bind(path, root)
    for name in ("tmp", "proc", "dev/shm", "var/tmp"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for device in DEVICES:
        (root / device[1:]).touch()
    (root / "var" / "tmp").chmod(0o755)
    syscalls.mount_read_only(place)
    for device in DEVICES:
        with contextlib.suppress(OSError):
            mount(device, str(root / device[1:]), None, MS_BIND)
    options = f"size={disk_bytes},nr_inodes=32768,mode=700,uid={owner},gid={owner}"
    mount("tmpfs", str(root / "tmp"), "tmpfs", MS_NOSUID | MS_NODEV, options)
    for path in covered:  # an installation under /tmp, which the jail's own would hide
        _bind(path, root)
        syscalls.mount_read_only(str(root / path[1:]))
    has_proc = _mount_proc(str(root / "proc"))
    syscalls.pivot_root(place)
    return has_proc


def _mount_proc(target: str) -> bool:
    try:
        mount("proc", target, "proc", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except OSError:
        return False
    return True


def _bind(path: str, root: Path) -> None:
    source, target = Path(path), root / path[1:]
    if source.is_symlink() and path in SYSTEM:
        target.symlink_to(source.readlink())  # /bin -> usr/bin
        return
    if not source.exists() or target.exists():
        return
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    mount(str(source), str(target), None, MS_BIND | MS_REC)
