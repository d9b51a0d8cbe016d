"""The zygote process: torch imported once, then one fork for each jailed process. It never runs a torch operation.

Started by exec with an empty environment (what it never had can't leak from /proc). Its only tie to the judge is a
socket: when that closes, however the judge died, it kills what it forked and leaves. Between it and each jailed
process stands a *keeper* (see `keeper`).
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import time
from typing import Any

from apps.kernels.jail import blas, cgroups, namespaces, starts, syscalls, tree
from apps.kernels.jail.cell import Cell, lock_in
from apps.kernels.jail.channel import Channel
from apps.kernels.jail.keeper import Keeper, take_down
from apps.kernels.jail.limits import Limits
from apps.kernels.plain import from_plain
from apps.kernels.temporary import remove_tree

MESSAGE = 1 << 16
LAST_SECONDS = 3.0  # for keepers to take down their trees once the judge is gone
# Descriptors of a job, in the order the judge sends them; then the doors of its control groups, the count of their kills
# for want of memory (where the job has one), and files of its own.
CHANNEL, STATUS, OUTPUT, FIRST_MORE = 0, 1, 2, 3


_blas: list[str] = []  # OpenBLAS libraries that were loaded with one thread
BARE = ("probe", "phases")  # what a zygote without torch has at hand


def main(control_fd: int, place: str, *, bare: bool = False) -> None:
    """Serve the judge at the other end of `control_fd` until it is gone; then remove `place`, where its jails were.

    `bare` leaves torch out: for jails that look or attack and compute nothing.
    """
    control = socket.socket(fileno=control_fd)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)  # what a killed keeper leaves behind comes here
    code_root = sys.path.pop()  # the boot line put it last; jailed code has no business there
    report = _import_everything(code_root, bare)
    control.send(json.dumps({"ready": True, **report}).encode())
    children: dict[int, list[str]] = {}  # keepers, and the control groups of what they keep
    processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    waiting = select.poll()
    waiting.register(control.fileno(), select.POLLIN)
    while True:
        if waiting.poll(200):
            data, descriptors, _, _ = socket.recv_fds(control, MESSAGE, 64)
            if not data:
                break
            _serve(control, json.loads(data), descriptors, children)
        _reap(children, processes)
    for child in children:  # keepers: each takes down its own tree
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
    deadline = time.monotonic() + LAST_SECONDS
    while children and time.monotonic() < deadline:
        _reap(children, processes)
        time.sleep(0.01)
    take_down(processes)
    for groups in children.values():
        cgroups.remove(groups)
    remove_tree(place)
    os._exit(0)


def _import_everything(code_root: str, bare: bool) -> dict[str, Any]:
    sys.path.append(code_root)
    import apps.kernels.inside as inside

    with blas.one_thread():
        version = "" if bare else importlib.import_module("torch").__version__
        for name in BARE if bare else [module.name for module in pkgutil.iter_modules(inside.__path__)]:
            importlib.import_module(f"apps.kernels.inside.{name}")
    _blas[:] = blas.loaded()
    sys.path.remove(code_root)
    _set_aside()
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208
    return {"torch": version, "threads": threads}


def _set_aside() -> None:
    """Take what is imported out of the collector's sight: children share its pages, and collect only what is theirs."""
    gc.collect()
    gc.freeze()


def _serve(control: socket.socket, job: dict[str, Any], descriptors: list[int], children: dict[int, list[str]]) -> None:
    if "preload" in job:
        with blas.one_thread():
            for name in job["preload"]:
                importlib.import_module(name)
        _blas[:] = blas.loaded()
        _set_aside()
        control.send(json.dumps({"preloaded": True}).encode())
        return
    try:
        child = os.fork()
    except OSError as problem:
        control.send(json.dumps({"error": str(problem)}).encode())
        child = -1
    if child == 0:
        control.close()
        _keep(job, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    if child > 0:
        children[child] = job["directories"]
        control.send(json.dumps({"keeper": child}).encode())


def _reap(children: dict[int, list[str]], processes: int) -> None:
    """Bury keepers that have ended, and kill what a keeper that was killed has left to this process."""
    for child in list(children):
        with contextlib.suppress(ChildProcessError):
            ended, _ = os.waitpid(child, os.WNOHANG)
            if ended == 0:
                continue
            for left in tree.children_of(os.getpid(), processes):
                if left not in children:
                    os.kill(left, signal.SIGKILL)
                    os.waitpid(left, 0)
        cgroups.remove(children.pop(child))


def _keep(job: dict[str, Any], descriptors: list[int]) -> None:
    """The keeper's life: separate, fork the jailed process, keep it, take down what is left."""
    status = socket.socket(fileno=descriptors[STATUS])
    processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        zygote = os.getppid()
        signal.signal(signal.SIGTERM, _leave)
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != zygote:
            _leave(0, None)
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        os.setsid()
        cell = Cell(
            mode=job["mode"],
            place=job["place"],
            owner=job["owner"],
            read_only=tuple(job["read_only"]),
            limits=from_plain(Limits, job["limits"]),
            perturb=job["perturb"],
            others=_counted_along(job["mode"], job["owner"], processes),
        )
        if cell.mode == "root":
            namespaces.separate_as_root()
        elif cell.mode == "user":
            namespaces.separate_as_user()
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
        mine, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            status.detach()
            _become(job, cell, descriptors, theirs)
        status.sendall(json.dumps({"pid": pid}).encode() + b"\n")
        theirs.close()
        first, events = FIRST_MORE + job["groups"], job["events"]
        for index, descriptor in enumerate(descriptors):
            if index != STATUS and not (events and index == first):
                os.close(descriptor)
        listener = _listener(mine)
        mine.close()
        Keeper(status, pid, cell, processes, listener, descriptors[first] if events else -1).keep()
    except BaseException as problem:  # the keeper must never fall back into the zygote's loop
        with contextlib.suppress(OSError):
            status.sendall(json.dumps({"failed": f"{type(problem).__name__}: {problem}"}).encode() + b"\n")
        take_down(processes)
    os._exit(0)


def _leave(_signal: int, _frame: object) -> None:
    """The zygote is gone or ending: the keeper stops waiting and takes down what it kept."""
    raise SystemExit


def _listener(mine: socket.socket) -> int:
    """The descriptor at which the jailed process's exec and fork are asked for, -1 where this kernel can't have one."""
    _, descriptors, _, _ = socket.recv_fds(mine, 1, 1)
    return descriptors[0] if descriptors else -1


def _counted_along(mode: str, owner: int, processes: int) -> int:
    """Tasks outside the jail that RLIMIT_NPROC counts along: none where its user or its user namespace is its own.

    Root's are not counted either: the limit does not bind it.
    """
    if os.geteuid() == 0 or (mode == "light" and owner >= 0) or (mode == "user" and starts.kernel() >= (5, 14)):
        return 0
    return tree.tasks_of_user(os.geteuid(), processes)


def _become(job: dict[str, Any], cell: Cell, descriptors: list[int], keeper: socket.socket) -> None:
    """The jailed process's life: keep only its descriptors, lock itself in, run its entry."""
    code = 70
    try:
        os.setsid()  # a signal to its own group reaches nobody else
        groups, files_from = job["groups"], FIRST_MORE + job["groups"] + job["events"]
        cgroups.enter(descriptors[FIRST_MORE : FIRST_MORE + groups])
        wanted = [descriptors[CHANNEL], descriptors[OUTPUT], *descriptors[files_from:], keeper.detach()]
        channel_fd, output, *files, keeper_fd = _only_these(wanted)
        nothing = os.open("/dev/null", os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(nothing)
        os.close(output)
        channel = Channel(socket.socket(fileno=channel_fd), tuple(files))
        sys.stdout = open(1, "w", buffering=1, closefd=False, encoding="utf-8", errors="replace")  # noqa: SIM115
        sys.stderr = open(2, "w", buffering=1, closefd=False, encoding="utf-8", errors="replace")  # noqa: SIM115
        try:
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
            lock_in(cell, keeper_fd)
        except OSError as problem:
            channel.send({"locked": False, "error": str(problem)})
            os._exit(71)
        blas.give_back_threads(tuple(_blas))
        channel.send({"locked": True})
        module, _, name = str(job["entry"]).partition(":")
        entry = getattr(importlib.import_module(module), name)
        entry(channel, channel.receive())
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except MemoryError:
        code = 72
    except BaseException as problem:
        print(f"{type(problem).__name__}: {problem}", file=sys.stderr)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _only_these(wanted: list[int]) -> list[int]:
    """Close every descriptor but these, which move to 10, 11, ...; returns their new numbers."""
    high = [os.dup(fd) for fd in wanted]
    base = max([*high, 255]) + 1
    moved = [os.dup2(fd, base + i, inheritable=False) for i, fd in enumerate(high)]
    os.closerange(3, base)
    final = [os.dup2(fd, 10 + i, inheritable=False) for i, fd in enumerate(moved)]
    os.closerange(10 + len(final), base + len(moved) + 1)
    return final
