"""One judgement at a time on a device: a lock file that station, command line and benchmarks all respect.

The lock belongs to an open file, so the kernel releases it when its holder dies, however it dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from apps.kernels.judge.errors import HostCannotJudge


def lock_path(device: str) -> Path:
    """The device's lock file. `PRAGMA_LOCKS` names another directory (for tests, or where /tmp is per user)."""
    directory = Path(os.environ.get("PRAGMA_LOCKS") or tempfile.gettempdir())
    return directory / f"pragma-device-{device}.lock"


@contextlib.contextmanager
def device_lock(
    device: str = "cpu", *, timeout: float = 600.0, waiting: Callable[[str], None] = lambda _holder: None
) -> Iterator[None]:
    """Hold the device; `waiting` is told once who holds it now. Raises `HostCannotJudge` after `timeout` seconds."""
    path = lock_path(device)
    descriptor = _open(path)
    try:
        _acquire(descriptor, path, timeout, waiting)
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666))
            path.chmod(0o666)  # whoever judges next may be another user
        return os.open(path, flags)
    except OSError:
        pass
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as problem:
        raise HostCannotJudge(f"the device's lock {path} can't be opened: {problem.strerror}") from None


def _acquire(descriptor: int, path: Path, timeout: float, waiting: Callable[[str], None]) -> None:
    deadline = time.monotonic() + timeout
    told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "another process"
        if not told:
            waiting(holder)
            told = True
        if time.monotonic() > deadline:
            raise HostCannotJudge(f"the device was busy for {timeout:.0f} s (process {holder} holds {path})")
        time.sleep(0.05)
