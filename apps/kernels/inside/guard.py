"""Guard zones around every tensor that torch allocates, in the processes that check: what runs past an end crashes.

torch's CPU allocator (libc10) calls `posix_memalign` and `free` through its own table of imported functions. There the
two are replaced: each tensor gets pages of its own, pushed against a page that nobody can touch as closely as torch's
alignment lets, and filled with what no tolerance takes for an answer. Given back, its pages stay closed for a while.
"""

from __future__ import annotations

import collections
import ctypes
import struct
from pathlib import Path
from typing import Any

import torch

from apps.kernels.inside.values import (
    GUARD,
    MAP_ANONYMOUS,
    MAP_FIXED,
    MAP_NORESERVE,
    MAP_PRIVATE,
    PROT_NONE,
    map_memory,
)
from apps.kernels.jail.mappings import mappings

FILL = 0x7F
ALIGNMENT = 64
# Regions given back that stay mapped and closed, to catch who still uses them: so many, and so many bytes beside the newest.
CLOSED_KEPT, CLOSED_BYTES = 64, 256 << 20
PROT_BOTH, MADV_DONTNEED = 3, 4
SECTION, RELOCATION, SYMBOL = struct.Struct("<IIQQQQIIQQ"), struct.Struct("<QQq"), struct.Struct("<IBBHQQ")
RELOCATIONS = 4  # SHT_RELA

_libc = ctypes.CDLL(None, use_errno=True)
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.free.argtypes = [ctypes.c_void_p]
_kept: list[Any] = []  # callbacks must outlive every tensor
_regions: dict[int, tuple[int, int]] = {}
_closed: collections.deque[tuple[int, int]] = collections.deque()


def install() -> bool:
    """Replace the two functions for this process; False where libc10 is not laid out as expected."""
    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    try:
        slots = _imports(library.read_bytes(), ("posix_memalign", "free"))
        base = _loaded_at(str(library))
    except (OSError, struct.error, ValueError):
        return False
    if base is None or "posix_memalign" not in slots or "free" not in slots:
        return False
    allocate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)(_allocate)
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_release)
    _kept.extend((allocate, release))
    for name, function in (("posix_memalign", allocate), ("free", release)):
        _write(base + slots[name], ctypes.cast(function, ctypes.c_void_p).value or 0)
    return True


def _allocate(result: int, _alignment: int, size: int) -> int:
    rounded = -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
    pages = -(-rounded // GUARD) * GUARD
    try:
        start = map_memory(None, pages + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
        map_memory(start + GUARD, pages, PROT_BOTH, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0)
    except OSError:
        return 12  # ENOMEM, which torch reports
    address = start + GUARD + pages - rounded
    ctypes.memset(address, FILL, rounded)
    _regions[address] = (start, pages + 2 * GUARD)
    ctypes.c_void_p.from_address(result).value = address
    return 0


def _release(address: int | None) -> None:
    region = _regions.pop(address, None) if address else None
    if region is None:
        _libc.free(address)
        return
    _libc.mprotect(region[0], region[1], PROT_NONE)
    _libc.madvise(region[0], region[1], MADV_DONTNEED)
    _closed.append(region)
    while len(_closed) > CLOSED_KEPT or (len(_closed) > 1 and sum(size for _, size in _closed) > CLOSED_BYTES):
        _libc.munmap(*_closed.popleft())


def _imports(image: bytes, names: tuple[str, ...]) -> dict[str, int]:
    """Where a library keeps the addresses of functions it imports, as offsets from where it is loaded."""
    (sections_at,) = struct.unpack_from("<Q", image, 0x28)
    size, count = struct.unpack_from("<HH", image, 0x3A)
    sections = [SECTION.unpack_from(image, sections_at + i * size) for i in range(count)]
    found = {}
    for section in sections:
        if section[1] != RELOCATIONS:
            continue
        symbols = sections[section[6]]
        strings = sections[symbols[6]]
        for at in range(section[4], section[4] + section[5], RELOCATION.size):
            offset, info, _ = RELOCATION.unpack_from(image, at)
            if info >> 32 == 0:
                continue
            name_at = SYMBOL.unpack_from(image, symbols[4] + (info >> 32) * SYMBOL.size)[0] + strings[4]
            name = image[name_at : image.index(b"\0", name_at)].decode("ascii", "replace")
            if name in names:
                found[name] = offset
    return found


def _loaded_at(path: str) -> int | None:
    """Where it is mapped. Told by the end of its path: where the installation is reached by a link, its beginning differs."""
    end = "/" + "/".join(Path(path).parts[-3:])
    return next((one.start for one in mappings("self") if one.offset == 0 and one.path.endswith(end)), None)


def _write(address: int, value: int) -> None:
    """Overwrite a slot of the table, which the loader has made read-only."""
    page = address & ~(GUARD - 1)
    if _libc.mprotect(page, 2 * GUARD if address + 8 > page + GUARD else GUARD, PROT_BOTH):
        raise OSError(ctypes.get_errno(), "mprotect")
    ctypes.c_uint64.from_address(address).value = value
