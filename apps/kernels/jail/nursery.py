"""The zygote process: torch imported once, then one fork for each jailed process. It never runs a torch operation.

Started by exec with an empty environment (what it never had can't leak from /proc). Its only tie to the judge is a
socket: when that closes, however the judge died, it kills what it forked and leaves. Between it and each jailed
process stands a *keeper*, which locks nothing in but itself waits, reports how the process ended, and takes the whole
tree down with it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import time
import traceback
from typing import Any

from apps.kernels.jail import namespaces, syscalls
from apps.kernels.jail.cell import Cell, lock_in
from apps.kernels.jail.channel import Channel
from apps.kernels.jail.limits import Limits
from apps.kernels.plain import from_plain

MESSAGE = 1 << 16
LAST_SECONDS = 3.0  # for keepers to take down their trees once the judge is gone
# Descriptors of a job, in the order the judge sends them; files of its own follow.
CHANNEL, STATUS, OUTPUT, FIRST_FILE = 0, 1, 2, 3


def main(control_fd: int) -> None:
    """Serve the judge at the other end of `control_fd` until it is gone."""
    control = socket.socket(fileno=control_fd)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)  # what a killed keeper leaves behind comes here
    code_root = sys.path.pop()  # the boot line put it last; jailed code has no business there
    report = _import_everything(code_root)
    control.send(json.dumps({"ready": True, **report}).encode())
    children: set[int] = set()
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
    _take_down(processes)
    os._exit(0)


def _import_everything(code_root: str) -> dict[str, Any]:
    sys.path.append(code_root)
    import torch

    import apps.kernels.inside as inside

    for module in pkgutil.iter_modules(inside.__path__):
        importlib.import_module(f"apps.kernels.inside.{module.name}")
    sys.path.remove(code_root)
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208
    return {"torch": torch.__version__, "threads": threads}


def _serve(control: socket.socket, job: dict[str, Any], descriptors: list[int], children: set[int]) -> None:
    if "preload" in job:
        for name in job["preload"]:
            importlib.import_module(name)
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
        children.add(child)
        control.send(json.dumps({"keeper": child}).encode())


def _reap(children: set[int], processes: int) -> None:
    """Bury keepers that have ended, and kill what a keeper that was killed has left to this process."""
    for child in list(children):
        with contextlib.suppress(ChildProcessError):
            ended, _ = os.waitpid(child, os.WNOHANG)
            if ended == 0:
                continue
            for left in _children_of(os.getpid(), processes):
                if left not in children:
                    os.kill(left, signal.SIGKILL)
                    os.waitpid(left, 0)
        children.discard(child)


def _keep(job: dict[str, Any], descriptors: list[int]) -> None:
    """The keeper's life: separate, fork the jailed process, wait for its end, report, take down what is left."""
    status = socket.socket(fileno=descriptors[STATUS])
    processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        signal.signal(signal.SIGTERM, _leave)
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
        os.setsid()
        cell = Cell(
            mode=job["mode"],
            place=job["place"],
            owner=job["owner"],
            read_only=tuple(job["read_only"]),
            limits=from_plain(Limits, job["limits"]),
            perturb=job["perturb"],
        )
        if cell.mode == "root":
            namespaces.separate_as_root()
        elif cell.mode == "user":
            namespaces.separate_as_user()
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            status.detach()
            _become(job, cell, descriptors)
        for index in (CHANNEL, OUTPUT, *range(FIRST_FILE, len(descriptors))):
            os.close(descriptors[index])
        status.sendall(json.dumps({"pid": pid}).encode() + b"\n")
        _, code, usage = _wait_for(pid)
        _take_down(processes)
        end = {"code": os.waitstatus_to_exitcode(code), "cpu": usage.ru_utime + usage.ru_stime, "rss": usage.ru_maxrss}
        status.sendall(json.dumps(end).encode() + b"\n")
    except BaseException as problem:  # the keeper must never fall back into the zygote's loop
        with contextlib.suppress(OSError):
            status.sendall(json.dumps({"failed": f"{type(problem).__name__}: {problem}"}).encode() + b"\n")
        _take_down(processes)
    os._exit(0)


def _leave(_signal: int, _frame: object) -> None:
    """The zygote is gone or ending: the keeper stops waiting and takes down what it kept."""
    raise SystemExit


def _wait_for(pid: int) -> tuple[int, int, Any]:
    while True:
        ended, code, usage = os.wait4(-1, 0)
        if ended == pid:
            return ended, code, usage


def _take_down(processes: int) -> None:
    """Kill and reap every process that is left below this one, whatever it forked meanwhile.

    `processes` is /proc as it was opened before anything was separated: a keeper shares the jail's mounts, and the
    jail's own /proc knows nobody outside.
    """
    while True:
        for child in _children_of(os.getpid(), processes):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _children_of(pid: int, processes: int) -> list[int]:
    found = []
    for name in os.listdir(processes):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, IndexError):
            descriptor = os.open(f"{name}/stat", os.O_RDONLY, dir_fd=processes)
            with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(name))
    return found


def _become(job: dict[str, Any], cell: Cell, descriptors: list[int]) -> None:
    """The jailed process's life: keep only its descriptors, lock itself in, run its entry."""
    code = 70
    try:
        channel_fd, output, *files = _only_these([descriptors[CHANNEL], descriptors[OUTPUT], *descriptors[FIRST_FILE:]])
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
            lock_in(cell)
        except OSError as problem:
            channel.send({"locked": False, "error": str(problem)})
            os._exit(71)
        channel.send({"locked": True})
        module, _, name = str(job["entry"]).partition(":")
        entry = getattr(importlib.import_module(module), name)
        entry(channel, channel.receive())
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except MemoryError:
        code = 72
    except BaseException:
        traceback.print_exc()
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
