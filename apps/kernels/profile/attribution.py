"""Sampled addresses by the file and function they lie in, and by loop of the candidate's own libraries."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.jail.mappings import Mapped, mappings
from apps.kernels.profile.elf import BadElf, Symbols, read_symbols
from apps.kernels.profile.runner import BuiltLibrary
from apps.kernels.profile.sampling import KERNEL

_MATHS = re.compile(r"^(libm|libmvec|libsvml|libimf|libsleef)[-.]")


@dataclass(frozen=True)
class Attribution:
    """Samples by (file's name, function), by address within each library, and their number."""

    total: int
    functions: Counter[tuple[str, str]]
    addresses: dict[Path, Counter[int]]

    def share_of_libraries(self) -> float:
        """Share of the samples that lie in the candidate's own libraries (0 to 1)."""
        return sum(sum(c.values()) for c in self.addresses.values()) / self.total if self.total else 0.0

    def share_of_mathematics(self) -> float:
        """Share of the samples in the C library's mathematics, vector forms included (0 to 1)."""
        return self._share(lambda file: bool(_MATHS.match(file)))

    def share_of_kernel(self) -> float:
        """Share of the samples inside the operating system's kernel (0 to 1)."""
        return self._share(lambda file: file == "[kernel]")

    def symbols(self, most: int = 12) -> tuple[tuple[str, float], ...]:
        """`function (file)` with its share, the largest first, without those that one sample in a hundred hits."""
        named = self.functions.most_common(most) if self.total else []
        return tuple((f"{name} ({file})", n / self.total) for (file, name), n in named if n >= 0.01 * self.total)

    def _share(self, wanted: Callable[[str], bool]) -> float:
        hits = sum(n for (file, _), n in self.functions.items() if wanted(file))
        return hits / self.total if self.total else 0.0


def attribute(
    addresses: Sequence[int], mapped: Sequence[Mapped], libraries: Sequence[BuiltLibrary], pid: int
) -> Attribution:
    """Finds each address's file by the process's map and its function by the file's symbols."""
    own = {library.inode: library.path for library in libraries if library.inode}
    functions: Counter[tuple[str, str]] = Counter()
    within: dict[Path, Counter[int]] = {path: Counter() for path in own.values()}
    for address, n in Counter(addresses).items():
        if address == KERNEL:
            functions["[kernel]", "kernel"] += n
            continue
        mapping = next((m for m in mapped if m.start <= address < m.end), None)
        if mapping is None or not mapping.path.startswith("/"):
            functions[mapping.path if mapping and mapping.path else "[anonymous]", "?"] += n
            continue
        mine = own.get(mapping.inode)
        symbols = _symbols(mine or _readable(mapping.path, pid))
        place = symbols.address(address - mapping.start + mapping.offset) if symbols else None
        name = symbols.name_at(place) if symbols and place is not None else None
        functions[Path(mapping.path).name, name or "?"] += n
        if mine is not None and place is not None:
            within[mine][place] += n
    return Attribution(len(addresses), functions, within)


def read_mappings(pid: int) -> tuple[Mapped, ...]:
    """Executable mappings of a process, empty where they can't be read."""
    return tuple(one for one in mappings(pid) if one.executable)


def _readable(path: str, pid: int) -> Path:
    """The file as the process sees it, which may have another root; else as this process does."""
    inside = Path(f"/proc/{pid}/root{path}")
    try:
        return inside if inside.exists() else Path(path)
    except OSError:
        return Path(path)


def _symbols(path: Path) -> Symbols | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return _read_once(str(path), status.st_ino, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _read_once(path: str, inode: int, changed: int) -> Symbols | None:
    try:
        return read_symbols(Path(path))
    except (BadElf, OSError):
        return None
