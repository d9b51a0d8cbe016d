"""Stopping a thread of another process by ptrace, to read its registers."""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

GET_FLOATING_POINT, DETACH, SEIZE, INTERRUPT = 14, 17, 0x4206, 0x4207
_WAIT_ALL = 0x40000000


class NoTracing(RuntimeError):
    """The thread can't be traced here; the message says why."""


def ptrace(request: int, thread: int, data: int = 0) -> int:
    """ptrace(2); -1 where it fails. All requests must come from the thread that seized."""
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.restype = ctypes.c_long
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return int(call(request, thread, None, data))


def stopped(thread: int) -> bool:
    """Stop a seized thread; whether it stands still now."""
    if ptrace(INTERRUPT, thread) < 0:
        return False
    try:
        found, status = os.waitpid(thread, _WAIT_ALL)
    except ChildProcessError:
        return False
    return found == thread and os.WIFSTOPPED(status)


@contextmanager
def interrupted(thread: int) -> Iterator[None]:
    """The thread stands still while the block runs; what was stopped before stops again soon after. Raises `NoTracing`."""
    if platform.machine() != "x86_64":
        raise NoTracing("registers are read on x86-64 only")
    if ptrace(SEIZE, thread) < 0:
        raise NoTracing(f"ptrace: {os.strerror(ctypes.get_errno())}")
    if not stopped(thread):
        raise NoTracing("ptrace: it would not stop")
    try:
        yield
    finally:
        ptrace(DETACH, thread)
