"""Memory files the judge shares with jailed processes, and where tensors lie in them."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from apps.kernels.jail.syscalls import same_bytes
from apps.kernels.machine import Cache
from apps.kernels.plain import Plain

_random = secrets.SystemRandom()
PAGE = 4096
ARENA = "arena"  # the name of the memory file that inputs lie in
ALIGNMENT = 64  # torch's own allocator's
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE = 1033, 2, 4, 16
ITEM_BYTES = {
    "float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2, "int8": 1,
    "uint8": 1, "bool": 1,
}  # fmt: skip


def up(size: int, to: int) -> int:
    """`size` rounded up to a multiple of `to`."""
    return -(-size // to) * to


def file_name(name: str) -> str:
    """What the kernel lists the memory file of that name as."""
    return f"pragma-{name}"


@contextmanager
def freed_on_failure(*owned: SharedMemory | Arena) -> Iterator[None]:
    """What is owned is given back if what follows fails."""
    try:
        yield
    except BaseException:
        for one in owned:
            one.close()
        raise


class SharedMemory:
    """A memory file and the judge's own writable mapping of it."""

    def __init__(self, name: str, size: int) -> None:
        self.size = up(max(size, PAGE), PAGE)
        self.fd = os.memfd_create(file_name(name), os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        # Whoever cut it short would have the judge die of a bus error on its next look.
        fcntl.fcntl(self.fd, F_ADD_SEALS, F_SEAL_SHRINK)
        self.map = mmap.mmap(self.fd, self.size)
        self.view = memoryview(self.map)
        self._address: int | None = None

    def grow(self, size: int) -> None:
        """Make it at least this long; what it holds stays, earlier pointers don't."""
        if size <= self.size:
            return
        self.size = up(size, PAGE)
        self.view.release()
        self.map.close()
        os.ftruncate(self.fd, self.size)
        self.map = mmap.mmap(self.fd, self.size)
        self.view = memoryview(self.map)
        self._address = None

    def clear(self) -> None:
        """Leave nothing but zeros in it."""
        ctypes.memset(self.pointer(0), 0, self.size)

    def seal(self) -> None:
        """From now on nobody else can map it writable or change its size (Linux 5.1; before, the mapping is trusted).

        The judge's own mapping goes on being writable. Mappings that exist are not revoked: seal it before it is shared.
        """
        try:
            fcntl.fcntl(self.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
        except OSError:
            fcntl.fcntl(self.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW)

    def pointer(self, offset: int) -> ctypes.c_void_p:
        """The address of a byte, for calls that copy memory."""
        if self._address is None:
            keeper = ctypes.c_char.from_buffer(self.map)
            self._address = ctypes.addressof(keeper)
            del keeper
        return ctypes.c_void_p(self._address + offset)

    def close(self) -> None:
        """Give the memory back as soon as nobody else maps it."""
        self.view.release()
        self.map.close()
        os.close(self.fd)


@dataclass(frozen=True)
class TensorSpec:
    """A tensor's layout: data type, shape, strides in elements, and bytes from its first to its last element."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    bytes: int

    @classmethod
    def read(cls, data: Plain) -> TensorSpec:
        """From what the oracle says."""
        return cls(str(data["dtype"]), tuple(data["shape"]), tuple(data["stride"]), int(data["bytes"]))

    @property
    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def item(self) -> int:
        """Bytes of one element."""
        return ITEM_BYTES[self.dtype]

    @property
    def least_bytes(self) -> int:
        """Bytes that reading or writing all of it must move: elements that share memory (`expand`) are moved once."""
        return min(self.numel * self.item, self.bytes)

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return "float" in self.dtype

    @property
    def contiguous(self) -> bool:
        """Whether its elements lie in order without gaps."""
        return self.bytes == self.numel * self.item and self.stride == contiguous_stride(self.shape)

    @property
    def shares_memory(self) -> bool:
        """Whether elements of it may lie on one another: an expanded view, overlapping windows into one row."""
        reach = 1
        for step, size in sorted((step, size) for step, size in zip(self.stride, self.shape, strict=True) if size > 1):
            if step < reach:
                return self.numel > 0
            reach = step * (size - 1) + reach
        return False

    def plain(self) -> Plain:
        """For a message."""
        return {"dtype": self.dtype, "shape": list(self.shape), "stride": list(self.stride), "bytes": self.bytes}


def contiguous_stride(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of a contiguous tensor, in elements."""
    stride, step = [], 1
    for size in reversed(shape):
        stride.append(step)
        step *= max(1, size)
    return tuple(reversed(stride))


def pack(sizes: Sequence[int], start: int = 0) -> tuple[list[int], int]:
    """Aligned offsets for blocks of these sizes one after the other, and the end of the last."""
    offsets, at = [], start
    for size in sizes:
        offsets.append(at)
        at = up(at + size, ALIGNMENT)
    return offsets, at


@dataclass(frozen=True)
class Place:
    """Where one input tensor lies in an arena: its first page, the size of its pages, and its own offset in the file."""

    page: int
    size: int
    at: int

    def plain(self) -> Plain:
        """For a message."""
        return {"page": self.page, "size": self.size, "at": self.at}


@dataclass(frozen=True)
class Places:
    """Where sets of inputs may lie in an arena: so many regions, and in each of them as many ways to lie in it.

    Row `region * ways` is the first way of a region. The ways of one region share its pages: one set of inputs at a time.
    """

    rows: tuple[tuple[Place, ...], ...]
    ways: int
    bytes: int

    @property
    def firsts(self) -> range:
        """The first way of each region."""
        return range(0, len(self.rows), self.ways)

    @property
    def mapped_bytes(self) -> int:
        """Bytes that a runner maps of the arena: the pages of each tensor of each row, those that rows share once."""
        return sum(size for _, size in {(place.page, place.size) for row in self.rows for place in row})

    def draw(self, count: int) -> list[int]:
        """Rows in as many different regions, each of them one of its ways, by chance."""
        return [first + _random.randrange(self.ways) for first in _random.sample(self.firsts, count)]


class Arena:
    """The memory in which inputs lie, and the places in it. Judge and comparer write there; one runner or several read.

    The runners of a timed group share one: each call's inputs then lie on the same pages of the machine's memory for all of
    them, and which pages a process was dealt is no part of what is compared. `lent` is sealed memory that outlives it.
    """

    def __init__(self, places: Places, lent: SharedMemory | None = None) -> None:
        self.places = places
        self.memory = lent or SharedMemory(ARENA, places.bytes)
        self._own = lent is None
        if self._own:
            self.memory.seal()  # before anyone else has it: whoever mapped it writable earlier would keep that mapping

    def close(self) -> None:
        """Give the memory back as soon as nobody else maps it."""
        if self._own:
            self.memory.close()


class Sweep:
    """Memory that is read to leave these caches alike, whatever went through them before: twice as much as each of them holds.

    The last one is taken to serve all processors that the judge may run on; the one before is swept on each of them.
    """

    def __init__(self, caches: Sequence[Cache]) -> None:
        self._own, self._last = (caches[-2].bytes if len(caches) > 1 else 0), caches[-1].bytes
        self._memory = SharedMemory("sweep", 2 * max(self._own, self._last))

    def __call__(self) -> None:
        """Read it."""
        processors = os.sched_getaffinity(0)
        try:
            for one in processors:
                os.sched_setaffinity(0, {one})
                self._read(self._own)
        finally:
            os.sched_setaffinity(0, processors)
        self._read(self._last)

    def _read(self, half: int) -> None:
        same_bytes(self._memory.pointer(0), self._memory.pointer(half), half)

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()


def flush(specs: Sequence[TensorSpec], count: int, *, askew: bool = False) -> Places:
    """`count` regions, each tensor on pages of its own, as near to a page that can't be touched as may be.

    A runner maps each with an untouchable page before and after it. Every second region pushes tensors against the
    page after them, as closely as torch's alignment lets, the others against the page before. `askew` starts each one
    element later than torch's allocator would, as a view of a larger tensor may.
    """
    found, at = [], 0
    for index in range(count):
        row = []
        for spec in specs:
            lead = spec.item if askew else 0
            need = lead + max(spec.bytes, 1)
            size = up(need, PAGE)
            shift = size - up(need, ALIGNMENT) if index % 2 == 0 else 0
            row.append(Place(at, size, at + shift + lead))
            at += size
        found.append(tuple(row))
    return Places(tuple(found), 1, at)


def scattered(specs: Sequence[TensorSpec], regions: int, ways: int) -> Places:
    """`regions` regions in which each tensor begins at one of `ways` places of its first page, by chance.

    How two tensors lie to each other within a page decides whether a processor takes a load for one that depends on a store
    just made (on many only the lower twelve bits of the addresses are compared): the same code then takes up to twice as
    long. An allocator's luck would fix that for a process's whole life. Here each window draws it anew.
    """
    found, at = [], 0
    for _ in range(regions):
        pages = []
        for spec in specs:
            size = up(max(spec.bytes, 1), PAGE) + PAGE
            pages.append((at, size, (size - max(spec.bytes, 1)) // ALIGNMENT))
            at += size
        for _ in range(ways):
            found.append(tuple(Place(a, size, a + ALIGNMENT * _random.randint(0, spare)) for a, size, spare in pages))
    return Places(tuple(found), ways, at)
