"""Directories for temporary files: removed when their use ends, or by the next one made beside them if their maker was killed.

Each is locked by its maker for as long as that lives; what bears our prefix and nobody's lock is left over.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PREFIX = "pragma-tmp-"


class TemporaryPlace:
    """A new private directory `pragma-tmp-WHAT-…` under `parent` (by default where the system's temporary files go)."""

    def __init__(self, what: str, parent: Path | None = None) -> None:
        sweep(parent)
        self.path = Path()
        self._lock = -1
        while self._lock < 0:
            self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{what}-", dir=parent))
            self._lock = _locked(self.path, wait=True)

    def remove(self) -> None:
        """Remove it with all that is in it. Once is enough, twice does no harm."""
        remove_tree(self.path)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@contextmanager
def temporary(what: str, parent: Path | None = None) -> Iterator[Path]:
    """A `TemporaryPlace` for the length of a block."""
    place = TemporaryPlace(what, parent)
    try:
        yield place.path
    finally:
        place.remove()


def sweep(parent: Path | None = None) -> None:
    """Remove what makers that are gone have left under `parent`, as far as we may."""
    for left in (parent or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        lock = _locked(left, wait=False)
        if lock >= 0:
            remove_tree(left)
            os.close(lock)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, in a directory that is there. Raises OSError."""
    with temporary("part", path.parent) as place:
        part = place / path.name
        part.write_bytes(content)
        part.replace(path)


def remove_tree(place: Path | str) -> None:
    """Remove a directory that hostile code may have filled; nothing is followed, and depth is no obstacle."""
    try:
        shutil.rmtree(place, ignore_errors=True)
    except RecursionError:  # directories nested deeper than Python's own removal goes
        command = ["rm", "-rf", "--one-file-system", "--", str(place)]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def _locked(place: Path, *, wait: bool) -> int:
    """A descriptor that holds the directory's lock; -1 where another has it, it is gone, or it isn't ours to open."""
    try:
        lock = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        if not wait:  # a file system that can't lock sweeps nothing either
            os.close(lock)
            return -1
    with contextlib.suppress(OSError):
        if os.path.samestat(os.fstat(lock), place.lstat()):
            return lock
    os.close(lock)  # swept between its making and its lock
    return -1
