"""The memory of a frozen runner, read and poisoned from outside: it is not asked, and can't answer otherwise."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from apps.kernels.jail.syscalls import read_memory, write_memory
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.memory import SharedMemory
from apps.kernels.judge.windows import Output, Window

LARGEST_PART = 1 << 30  # bytes that the kernel copies at a time


class TheirMemory:
    """Of the process `pid`. What can't be read is wrong: `CandidateFailed`."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def read(self, output: Output, offset: int, size: int) -> bytes:
        """Bytes of an output."""
        return self.read_at(output.address + offset, size)

    def read_at(self, address: int, size: int) -> bytes:
        """Bytes at an address (a buffer's)."""
        buffer = ctypes.create_string_buffer(max(1, size))
        self._copy(address, ctypes.cast(buffer, ctypes.c_void_p), size)
        return buffer.raw[:size]

    def read_into(self, memory: SharedMemory, offset: int, address: int, size: int) -> None:
        """Bytes at an address into shared memory, at `offset`."""
        for done in range(0, size, LARGEST_PART):
            self._copy(address + done, memory.pointer(offset + done), min(size - done, LARGEST_PART))

    def poison(self, window: Window, scratch: SharedMemory, spots: Sequence[float] | None = None) -> None:
        """Fill a window's outputs, or pages of them at `spots`, with what nobody takes for an answer: they are about to go."""
        for output in window.own:
            whole = range(0, output.spec.bytes, scratch.size)
            parts = [(at, min(scratch.size, output.spec.bytes - at)) for at in whole]
            for at, size in parts if spots is None else output.pages(spots):
                try:
                    write_memory(self._pid, output.address + at, scratch.pointer(0), size)
                except OSError:
                    return  # read-only memory; the next check of its content decides
        window.samples.clear()

    def _copy(self, address: int, into: ctypes.c_void_p, size: int) -> None:
        try:
            got = read_memory(self._pid, address, into, size)
        except OSError as problem:
            raise CandidateFailed("incorrect", f"its output's memory can't be read: {problem.strerror}") from None
        if got != size:
            raise CandidateFailed("incorrect", "its output's memory ends before its shape does")
