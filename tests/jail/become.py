"""python become.py KIND HOME COMMAND ...: become another kind of user, then the command. Only for `somebody.run_as`.

Runs as root in mount and process namespaces of its own (`unshare` has made them), so that what is mounted here is nobody
else's. The Python that tests run on may lie where only root can enter; it is laid open here, for this process alone.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from apps.kernels.jail import seccomp, syscalls  # noqa: E402
from apps.kernels.jail.isolation import readable_prefixes  # noqa: E402

ORDINARY = 61234
CONTAINERS_ROOT = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}  # what Docker leaves root by default
NAMESPACE_CALLS = (272, 308, 165, 155, 430, 442)  # unshare, setns, mount, pivot_root, fsopen, mount_setattr


def lay_open(path: Path) -> None:
    """Let others reach a directory whose way leads through closed ones, by binding it over an empty way of its own."""
    closed = next((p for p in [*reversed(path.parents), path] if not p.stat().st_mode & 0o001), None)
    if closed is None:
        return
    source = os.open(path, os.O_PATH)
    syscalls.mount("tmpfs", str(closed), "tmpfs", syscalls.MS_NOSUID, "mode=755")
    path.mkdir(parents=True, exist_ok=True)
    syscalls.mount(f"/proc/self/fd/{source}", str(path), None, syscalls.MS_BIND | syscalls.MS_REC)
    os.close(source)


def forbid_namespaces() -> None:
    """What a container's own filter does: no namespaces, no mounts."""
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    wanted = seccomp._start()
    for number in NAMESPACE_CALLS:
        wanted.refuse(number)
    wanted.refuse_flags(seccomp.CLONE, 0, seccomp.NEW_NAMESPACES, seccomp.EPERM)
    wanted.give(seccomp.ALLOW)
    wanted.install()


def keep_capabilities(kept: set[int]) -> None:
    """Drop all others for good."""
    for capability in range(41):
        if capability not in kept:
            syscalls.libc.prctl(syscalls.PR_CAPBSET_DROP, capability, 0, 0, 0)
    held = sum(1 << bit for bit in kept) & syscalls.effective_capabilities()
    header = ctypes.create_string_buffer(b"\x22\x05\x08\x20" + bytes(4), 8)
    halves = [held & 0xFFFFFFFF, held >> 32]
    data = (ctypes.c_uint32 * 6)(halves[0], halves[0], 0, halves[1], halves[1], 0)
    syscalls.checked(syscalls.libc.capset(header, data), "capset")


def main(kind: str, home: str, command: list[str]) -> None:
    """Become it. Does nothing in the machine's own namespaces."""
    if os.getpid() != 1:
        raise SystemExit("become.py mounts things: it runs as the first process of namespaces of its own")
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    if kind == "root in a container":
        keep_capabilities(CONTAINERS_ROOT)
    else:
        for prefix in (*readable_prefixes(), ROOT):
            lay_open(Path(prefix))
        os.chown(home, ORDINARY, ORDINARY)
        os.setgroups([])
        os.setresgid(ORDINARY, ORDINARY, ORDINARY)
        os.setresuid(ORDINARY, ORDINARY, ORDINARY)
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
    if kind != "ordinary user":
        forbid_namespaces()
    kept = {name: value for name, value in os.environ.items() if name.startswith("PRAGMA_")}
    environment = {"PATH": os.environ["PATH"], "HOME": home, "TMPDIR": home, "PRAGMA_LOCKS": home, **kept}
    os.chdir(ROOT)
    os.execve(command[0], command, environment)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
