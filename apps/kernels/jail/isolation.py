"""What this host can enforce on a jailed process, found out by trying, not by asking for versions."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

from apps.kernels.jail import landlock, syscalls
from apps.kernels.machine import Isolation

MODES = ("root", "user", "light")
TRIAL = (
    "import sys,os; sys.path.append(sys.argv[1])\n"
    "from apps.kernels.jail import namespaces\n"
    "(namespaces.separate_as_root if sys.argv[2]=='root' else namespaces.separate_as_user)()\n"
    "pid=os.fork()\n"
    "if pid==0:\n"
    "    ok=namespaces.build_root(sys.argv[3],(),1<<20,65534 if sys.argv[2]=='user' else 62000)\n"
    "    os._exit(0 if ok else 3)\n"
    "code=os.waitstatus_to_exitcode(os.waitpid(pid,0)[1])\n"
    "sys.exit(code if code>=0 else 1)\n"
)


@functools.cache
def _namespaces_work(mode: str) -> tuple[bool, str]:
    """Whether a namespace jail can be built in this mode, and what stood in the way."""
    import tempfile

    from apps.kernels.jail.zygote import CODE_ROOT

    place = tempfile.mkdtemp(prefix="pragma-trial-")
    try:
        command = [sys.executable, "-I", "-c", TRIAL, CODE_ROOT, mode, place]
        done = subprocess.run(command, env={}, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return False, str(problem)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if done.returncode == 0:
        return True, "namespaces of its own"
    if done.returncode == 3:
        return True, "namespaces of its own, without /proc"
    lines = done.stderr.strip().splitlines()
    return False, lines[-1] if lines else f"exit code {done.returncode}"


@functools.cache
def best_mode() -> str:
    """The strongest way to jail that works here: root, user or light."""
    if not syscalls.SUPPORTED:
        return "light"
    if os.geteuid() == 0 and _namespaces_work("root")[0]:
        return "root"
    return "user" if _namespaces_work("user")[0] else "light"


def isolation_level(mode: str | None = None) -> str:
    """`full` with namespaces, Landlock and seccomp; `partial` with the last two alone; else `weak`.

    Below `partial` candidates are refused unless the request allows it.
    """
    mode = mode or best_mode()
    if not syscalls.SUPPORTED or landlock.abi() == 0:
        return "partial" if mode != "light" and syscalls.SUPPORTED else "weak"
    return "partial" if mode == "light" else "full"


def isolation(mode: str | None = None) -> tuple[Isolation, ...]:
    """Each thing a jail may enforce, whether it does here, and by what or why not."""
    mode = mode or best_mode()
    spaces = mode != "light"
    why_not = "" if spaces else _namespaces_work("user")[1]
    version = landlock.abi()
    filters = syscalls.SUPPORTED

    def row(name: str, enforced: bool, by: str, otherwise: str) -> Isolation:
        return Isolation(name, enforced, by if enforced else otherwise)

    files = "a root of its own" if spaces else f"Landlock ABI {version}"
    return (
        row("namespaces", spaces, f"{mode}: mount, process, network, IPC, host name", why_not),
        row("landlock", version > 0, f"ABI {version}", "this kernel has no Landlock, or it is switched off"),
        row("seccomp", filters, "two phases: build, judged", "only written for Linux on x86-64"),
        row("network", spaces or filters, "network namespace" if spaces else "seccomp: no sockets", "not closed"),
        row("files", spaces or version > 0, files, "the whole file system can be read"),
        row("private /tmp", spaces, "tmpfs, gone with the process", "a directory of its own on the host's disk"),
        row("other processes", spaces or filters, "process namespace" if spaces else "seccomp", "not hidden"),
        row(
            "another user", mode == "root", "an unused user id", "same user as the judge" if not spaces else "as nobody"
        ),
        row("memory", True, "RLIMIT_AS", ""),
        row("processes", filters, "seccomp and RLIMIT_NPROC", "RLIMIT_NPROC, which doesn't bind root"),
        row("environment", True, "started by exec with an empty one", ""),
        row("dies with its judge", True, "process namespace" if spaces else "parent-death signal and subreaper", ""),
    )


def compilers() -> dict[str, str]:
    """The C++ compilers found: name to path."""
    found: dict[str, str] = {}
    for name in ("g++", "clang++", *(f"clang++-{version}" for version in range(22, 13, -1))):
        path = shutil.which(name, path="/usr/local/bin:/usr/bin:/bin")
        if path:
            found.setdefault("clang++" if name.startswith("clang") else name, path)
    return found


def seccomp_filters(pid: int) -> tuple[int, ...]:
    """How many filters hold each thread of a process, read from outside (Linux 5.9+; empty where not shown)."""
    counts = []
    for task in _tasks(pid):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/task/{task}/status").read_text().splitlines():
                if line.startswith("Seccomp_filters:"):
                    counts.append(int(line.split()[1]))
    return tuple(counts)


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names are what is wanted
    except OSError:
        return []
