"""What the profiler needs of a candidate that is built, warm and running in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class BuiltLibrary:
    """A shared object the candidate built: the file as this process can read it, and how it was made.

    `command` is the compiler's whole command line and `source` the text it compiled; without them there are no
    compiler's remarks. The runner may have mapped another copy of the file: then `mapped_inode` says which.
    """

    path: Path
    command: tuple[str, ...] = ()
    source: str = ""
    mapped_inode: int = 0

    @property
    def inode(self) -> int:
        """The inode that the runner's map of memory shows; 0 where there is none."""
        return self.mapped_inode or (self.path.stat().st_ino if self.path.exists() else 0)


class RunnerGone(RuntimeError):
    """The candidate's process ended or stopped answering while it was profiled."""


class ProfiledRunner(Protocol):
    """A candidate's live process. Calls are on inputs of the judge's choosing, in one process, nothing else between."""

    @property
    def pid(self) -> int:
        """The process's id as this process sees it."""

    @property
    def libraries(self) -> tuple[BuiltLibrary, ...]:
        """The shared objects that carry the candidate's own kernels."""

    def call(self, n: int) -> float:
        """Calls the candidate n times in a row; the seconds that all of them took together. Raises `RunnerGone`."""

    def set_threads(self, k: int) -> None:
        """From the next call on, parallel regions use k threads. Raises `RunnerGone`."""
