"""An abort told from a stray pointer: the first process of a process namespace doesn't get its own SIGABRT."""

from __future__ import annotations

import ctypes
import signal

CODE = int(signal.SIGABRT)  # what the process leaves with: the handler is `_exit`, which gets the signal's number


def name_them() -> None:
    """From now on `abort()` (a failed assertion, an exception nobody catches, a broken heap) ends in exit code 6.

    Without a handler the kernel drops the signal, and abort's last resort is an instruction that looks like an access
    out of bounds.
    """
    libc = ctypes.CDLL(None)
    libc.signal.restype = ctypes.c_void_p
    libc.signal.argtypes = [ctypes.c_int, ctypes.c_void_p]
    libc.signal(signal.SIGABRT, ctypes.cast(libc._exit, ctypes.c_void_p))
