"""What a process says, kept in a file of its own that is turned over before it grows large."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path
from typing import IO

LARGEST = 5 << 20
KEPT = 5


class LogFile:
    """Appends to `path`; at `LARGEST` bytes it becomes path.1, path.1 becomes path.2, up to `KEPT`."""

    def __init__(self, path: Path, largest: int = LARGEST, kept: int = KEPT) -> None:
        self.path = path
        self._largest, self._kept = largest, kept
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")

    def write(self, line: bytes) -> None:
        """Append one line."""
        if self._file.tell() + len(line) > self._largest:
            self._turn_over()
        self._file.write(line)
        self._file.flush()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def follow(self, stream: IO[bytes]) -> None:
        """Write down everything that comes from `stream`, in a thread of its own, until it ends."""
        threading.Thread(target=self._follow, args=(stream,), name=f"log {self.path.stem}", daemon=True).start()

    def _follow(self, stream: IO[bytes]) -> None:
        with stream:
            for line in stream:
                with contextlib.suppress(OSError, ValueError):  # a full disk must not end the process it is about
                    self.write(line)

    def _turn_over(self) -> None:
        self._file.close()
        for number in range(self._kept - 1, 0, -1):
            older = self._numbered(number)
            if older.exists():
                older.replace(self._numbered(number + 1))
        self.path.replace(self._numbered(1))
        self._file = self.path.open("ab")

    def _numbered(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")
