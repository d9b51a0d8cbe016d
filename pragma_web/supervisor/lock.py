"""One supervisor an installation: a locked file that says where the running one answers. Standard library alone."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from pathlib import Path

NAME = "supervisor.lock"


class Lock:
    """Held as long as this process lives; the kernel lets go of it however it ends."""

    def __init__(self, run: Path) -> None:
        self._path = run / NAME
        self._file: int | None = None

    def take(self) -> bool:
        """Whether it is ours now."""
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        os.close(self._file)
        self._file = None
        return False

    def say(self, address: str) -> None:
        """Write down where this one answers."""
        assert self._file is not None
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, json.dumps({"pid": os.getpid(), "address": address}).encode(), 0)


def running(run: Path) -> str | None:
    """Where the supervisor that runs now answers ("" while it is starting), or None if none runs."""
    path = run / NAME
    if not path.exists():
        return None
    lock = Lock(run)
    if lock.take():
        os.close(lock._file)  # type: ignore[arg-type]
        return None
    with contextlib.suppress(ValueError, OSError):
        return str(json.loads(path.read_text()).get("address", ""))
    return ""
