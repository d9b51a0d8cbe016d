"""A library under another name: whether an object that a candidate calls its own holds the code of one that lies here.

Code under the candidate's own directory counts as its kernel's. A copy of a BLAS put there does not: where objects of its
own are together larger than kernels are, and always before anything is called faster, the code that was sampled in them is
looked for in the libraries of this machine. It may lie in many small files, mapped where the library was.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from apps.kernels.jail.syscalls import read_memory
from apps.kernels.judge import policy
from apps.kernels.rules.names import LIBRARY_FILES

LARGER = 1 << 20  # bytes of code; an extension built with Torch's own headers has a tenth of that
WINDOW = 64  # bytes of code that are looked for: no two compilations of different sources agree on so many
HOTTEST = 4  # places that are looked for
CHUNK = 16 << 20
SYSTEM = (Path("/usr/lib"), Path("/usr/local/lib"), Path("/opt"))


def borrowed(
    pid: int, addresses: Iterable[int], objects: Iterable[tuple[int, int, str]], work: str, *, always: bool
) -> tuple[str, str] | None:
    """The object and the library whose code it holds, by name; None where there is none. `pid` must stand still.

    Objects that are small all together are looked at where `always` says so: it takes a second or two.
    """
    ranges = [r for r in objects if policy.classify(r[2], work) == "own"]
    if not always and sum(end - start for start, end, _ in ranges) <= LARGER:
        return None
    hot = Counter(address & -WINDOW for address in addresses if any(s <= address < e for s, e, _ in ranges))
    needles = {address: code for address, _ in hot.most_common(HOTTEST) if (code := _code(pid, address))}
    for library in _libraries() if needles else ():
        seen = _found(library, needles)
        if seen and 2 * len(seen) >= len(needles):
            own = next(path for start, end, path in ranges if start <= seen[0] < end)
            return Path(own).name, library.name
    return None


def _code(pid: int, address: int) -> bytes:
    """The code at an address; nothing where it can't be read or says too little to be told from other code."""
    buffer = ctypes.create_string_buffer(WINDOW)
    try:
        got = read_memory(pid, address, ctypes.cast(buffer, ctypes.c_void_p), WINDOW)
    except OSError:
        got = _forced(pid, address, buffer)
    return buffer.raw if got == WINDOW and len(set(buffer.raw)) > WINDOW // 4 else b""


def _forced(pid: int, address: int, buffer: ctypes.Array[ctypes.c_char]) -> int:
    """As a debugger reads: what may be executed only is read as well. How many bytes that gave."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            buffer.raw = code = os.pread(memory.fileno(), WINDOW, address)
    except OSError:
        return 0
    return len(code)


def _libraries() -> Iterator[Path]:
    """Compiled libraries of Python's packages, and what the system has of BLAS and its like."""
    named = {f"lib{name}" for name in LIBRARY_FILES}
    seen: set[Path] = set()
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix)):
        if Path(prefix) not in (Path("/usr"), Path("/")):
            seen |= {path.resolve() for path in _shared_objects(Path(prefix))}
    for directory in SYSTEM:
        seen |= {path.resolve() for path in _shared_objects(directory) if path.name.split(".")[0] in named}
    yield from sorted(path for path in seen if _bytes_of(path) > LARGER)


def _bytes_of(path: Path) -> int:
    """Of a file; 0 for what is none, or can't be looked at."""
    with suppress(OSError):
        status = path.stat()
        return status.st_size if stat.S_ISREG(status.st_mode) else 0
    return 0


def _shared_objects(directory: Path) -> Iterator[Path]:
    """Every file below with .so in its name; twice as fast as `Path.rglob` on a tree of many thousand files."""
    for folder, _, names in os.walk(directory):
        yield from (Path(folder, name) for name in names if ".so" in name)


def _found(library: Path, needles: Mapping[int, bytes]) -> list[int]:
    """The addresses whose code a file holds."""
    missing = dict(needles)
    with suppress(OSError), library.open("rb") as file:
        while missing and len(part := file.read(CHUNK)) >= WINDOW:
            for address in [address for address, code in missing.items() if code in part]:
                del missing[address]
            file.seek(1 - WINDOW, os.SEEK_CUR)
    return [address for address in needles if address not in missing]
