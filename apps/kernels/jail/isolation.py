"""What this host can enforce on a jailed process, found out by trying, not by asking for versions."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import stat
import subprocess
import sys
import sysconfig
from pathlib import Path

from apps.kernels.jail import cgroups, landlock, namespaces, starts, syscalls
from apps.kernels.machine import DEFAULT_REQUIRED, Isolation, IsolationLevel
from apps.kernels.temporary import temporary

MODES = ("root", "user", "light")
SETTING = "PRAGMA_ISOLATION"
TRIED_OWNER = 62000
TRIAL = """
import os, sys
sys.path.append(sys.argv[1])
from apps.kernels.jail import namespaces
mode, place, prefixes = sys.argv[2], sys.argv[3], sys.argv[4:]
(namespaces.separate_as_root if mode == "root" else namespaces.separate_as_user)()
pid = os.fork()
if pid == 0:
    has_proc = namespaces.build_root(place, prefixes, 1 << 20, 65534 if mode == "user" else 62000)
    if mode == "root":
        os.setgroups([]); os.setresgid(62000, 62000, 62000); os.setresuid(62000, 62000, 62000)
    for prefix in prefixes:
        os.listdir(prefix)
    os._exit(0 if has_proc else 3)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(code if code >= 0 else 1)
"""
CODE_ROOT = str(Path(__file__).resolve().parents[3])
CAP_CHOWN, CAP_SETGID, CAP_SETUID, CAP_SYS_PTRACE = 0, 6, 7, 19


@functools.cache
def _namespaces_work(mode: str) -> tuple[bool, str]:
    """Whether a namespace jail can be built in this mode, and what stood in the way."""
    try:
        with temporary("trial") as place:
            place.chmod(0o711)
            command = [sys.executable, "-I", "-c", TRIAL, CODE_ROOT, mode, str(place), *readable_prefixes()]
            done = subprocess.run(command, env={}, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return False, str(problem)
    if done.returncode == 0:
        return True, "namespaces of its own"
    if done.returncode == 3:
        return True, "namespaces of its own, without /proc"
    lines = done.stderr.strip().splitlines()
    return False, lines[-1] if lines else f"exit code {done.returncode}"


@functools.cache
def readable_prefixes() -> tuple[str, ...]:
    """Where Python and its packages lie, as far as that isn't under the system's own directories."""
    found = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values()}
    found |= {str(Path(path).resolve()) for path in found}
    outside = {p for p in found if not any(p == s or p.startswith(s + "/") for s in namespaces.SYSTEM)}
    existing = sorted(p for p in outside if Path(p).is_dir() and p != "/")
    return tuple(p for p in existing if not any(p.startswith(q + "/") for q in existing if q != p))


@functools.cache
def best_mode() -> str:
    """The strongest way to jail that works here: root, user or light."""
    if not syscalls.SUPPORTED:
        return "light"
    if os.geteuid() == 0 and _namespaces_work("root")[0]:
        return "root"
    return "user" if _namespaces_work("user")[0] else "light"


@functools.cache
def another_user(mode: str) -> tuple[bool, str]:
    """Whether jailed processes get a user of their own in this mode, and by what or why not."""
    if mode == "root":
        return True, "an unused user id for each"
    if mode == "user":
        return False, "nobody in a user namespace, outside it the judge's own user, without any right to its files"
    if os.geteuid() != 0:
        return False, "only root can change its user; Landlock and system-call filters stand in"
    wanted = {CAP_CHOWN: "CHOWN", CAP_SETGID: "SETGID", CAP_SETUID: "SETUID", CAP_SYS_PTRACE: "SYS_PTRACE"}
    held = syscalls.effective_capabilities()
    missing = [name for bit, name in wanted.items() if not held >> bit & 1]
    if missing:
        return False, f"this container's root lacks {', '.join(missing)}; root without any capability stands in"
    closed = next((d for p in readable_prefixes() for d in _on_the_way(p) if not _open_to_others(d)), None)
    if closed:
        return False, f"Python lies under {closed}, which others can't enter; root without any capability stands in"
    return True, "an unused user id for each"


def isolation_level(mode: str | None = None) -> IsolationLevel:
    """`full` with namespaces, Landlock and seccomp; `partial` with one of the first two; else `weak`."""
    mode = mode or best_mode()
    if not syscalls.SUPPORTED:
        return IsolationLevel.WEAK
    has_landlock = landlock.abi() > 0
    if mode != "light":
        return IsolationLevel.FULL if has_landlock else IsolationLevel.PARTIAL
    return IsolationLevel.PARTIAL if has_landlock else IsolationLevel.WEAK


def required_level() -> IsolationLevel:
    """The level below which this host refuses candidates: $PRAGMA_ISOLATION, else partial. Raises ValueError."""
    given = os.environ.get(SETTING, "").strip().lower()
    if not given:
        return DEFAULT_REQUIRED
    try:
        return IsolationLevel(given)
    except ValueError:
        raise ValueError(f"{SETTING} is {given!r}; it may be {', '.join(IsolationLevel)}") from None


def refusal(mode: str, *, allowed: bool) -> str | None:
    """Why candidates are refused here, with what to do; None where they may run. `allowed` is an admin's leave."""
    try:
        required = required_level()
    except ValueError as wrong:
        return f"{wrong}. Candidates are refused until it is set right."
    level = isolation_level(mode)
    if allowed or level.at_least(required):
        return None
    lacking = [f"{row.name} ({row.detail})" for row in isolation(mode) if not row.enforced]
    return (
        f"its isolation is {level.value} and {required.value} is required. Missing: {'; '.join(lacking)}. "
        f"Provide it, or accept the risk: an admin on the host's page, {SETTING}={level.value} or "
        "--allow-weak-isolation on a bare host."
    )


def isolation(mode: str | None = None) -> tuple[Isolation, ...]:
    """Each thing a jail may enforce, whether it does here, and by what or why not."""
    mode = mode or best_mode()
    spaces = mode != "light"
    version, filters = landlock.abi(), syscalls.SUPPORTED
    own_user, whose = another_user(mode)
    asked = filters and starts.supported()

    def row(name: str, enforced: bool, by: str, otherwise: str) -> Isolation:
        return Isolation(name, enforced, by if enforced else otherwise)

    files = "a root of its own, read-only" if spaces else f"Landlock ABI {version}"
    phases = "two phases, exec and fork asked of a process outside" if asked else "two phases, put on from inside"
    return (
        row("namespaces", spaces, f"{mode}: mount, process, network, IPC, host name", _why_no_namespaces(spaces)),
        row("landlock", version > 0, f"ABI {version}", "this kernel has no Landlock, or it is switched off"),
        row("seccomp", filters, phases, "only written for Linux on x86-64"),
        row("network", spaces or filters, "a network namespace" if spaces else "seccomp: no sockets", "not closed"),
        row("files", spaces or version > 0, files, "the whole file system can be read"),
        row(
            "private /tmp", spaces, "tmpfs, gone with the process", "a directory of its own on the host's disk, watched"
        ),
        row("other processes", spaces or filters, "a process namespace" if spaces else "seccomp", "not hidden"),
        row("another user", own_user, whose, whose),
        Isolation("memory", True, _memory()),
        row("processes", filters, _tasks(asked), "RLIMIT_NPROC, which doesn't bind root"),
        Isolation("disk", True, "size of the tmpfs" if spaces else "looked at five times a second, in the build phase"),
        Isolation("environment", True, "started by exec with an empty one"),
        Isolation("dies with its judge", True, "process namespace" if spaces else "parent-death signal and subreaper"),
    )


def _why_no_namespaces(spaces: bool) -> str:
    return "" if spaces or not syscalls.SUPPORTED else _namespaces_work("user")[1]


def _memory() -> str:
    found = cgroups.parents()
    if found.memory:
        return f"control group (version {found.version}) over all of its processes, RLIMIT_AS for each"
    return "RLIMIT_AS for each process; all together looked at five times a second in the build phase"


def _tasks(asked: bool) -> str:
    by = [f"control group (version {cgroups.parents().version})"] if cgroups.parents().tasks else []
    by += ["every fork asked for"] if asked else []
    return ", ".join([*by, "RLIMIT_NPROC", "none at all once judged"])


def _on_the_way(path: str) -> list[Path]:
    return [*reversed(Path(path).parents), Path(path)]


def _open_to_others(directory: Path) -> bool:
    with contextlib.suppress(OSError):
        return bool(directory.stat().st_mode & stat.S_IXOTH)
    return False


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
    for task in _tasks_of(pid):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{pid}/task/{task}/status").read_text(errors="replace").splitlines():
                if line.startswith("Seccomp_filters:"):
                    counts.append(int(line.split()[1]))
    return tuple(counts)


def _tasks_of(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - names are what is wanted
    except OSError:
        return []
