"""Function symbols of an ELF file, and addresses from file offsets: as much of the format as naming samples takes.

The file may be hostile. Everything is bounds-checked by `struct` and slicing; what can't be read raises `BadElf`.
"""

from __future__ import annotations

import bisect
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

_SYMTAB, _DYNSYM = 2, 11
_FUNCTION, _INDIRECT_FUNCTION = 2, 10
_LOAD = 1
_MOST_SYMBOLS = 4_000_000


class BadElf(ValueError):
    """Not a 64-bit little-endian ELF file, or a damaged one."""


@dataclass(frozen=True)
class Segment:
    """A loaded part: file offset, virtual address, bytes in the file."""

    offset: int
    address: int
    size: int


@dataclass(frozen=True)
class Symbols:
    """Functions of one file, ordered by address; `starts`, `ends` and `names` run in parallel."""

    segments: tuple[Segment, ...]
    starts: list[int]
    ends: list[int]
    names: list[str]

    def address(self, offset: int) -> int | None:
        """The virtual address of a byte at a file offset, None where it isn't loaded."""
        for segment in self.segments:
            if segment.offset <= offset < segment.offset + segment.size:
                return offset - segment.offset + segment.address
        return None

    def name_at(self, address: int) -> str | None:
        """The function that covers an address; a function without a size covers up to the next one."""
        index = bisect.bisect_right(self.starts, address) - 1
        if index < 0:
            return None
        end = self.ends[index]
        return self.names[index] if address < end or end == self.starts[index] else None


def read_symbols(path: Path) -> Symbols:
    """Symbols of the static table where the file has one, else of the dynamic one. Raises `BadElf` or `OSError`."""
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as problem:
            raise BadElf(str(problem)) from None
    with data:
        try:
            return _read(data)
        except (struct.error, IndexError, OverflowError) as problem:
            raise BadElf(f"damaged: {problem}") from None


def _read(data: mmap.mmap) -> Symbols:
    if data[:6] != b"\x7fELF\x02\x01":
        raise BadElf("not a 64-bit little-endian ELF file")
    segment_at, section_at = struct.unpack_from("<QQ", data, 32)
    segment_size, segments_n, section_size, sections_n = struct.unpack_from("<HHHH", data, 54)
    segments = []
    for i in range(segments_n):
        kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", data, segment_at + i * segment_size)
        if kind == _LOAD:
            segments.append(Segment(offset, address, size))
    tables: dict[int, tuple[int, int, int]] = {}
    for i in range(sections_n):
        _, kind, _, _, offset, size, link = struct.unpack_from("<IIQQQQI", data, section_at + i * section_size)
        if kind in (_SYMTAB, _DYNSYM):
            names_at, names_size = struct.unpack_from("<QQ", data, section_at + link * section_size + 24)
            tables[kind] = (offset, size, names_at)
            if names_at + names_size > len(data):
                raise BadElf("damaged: names lie outside the file")
    functions = _functions(data, *tables[max(tables, key=lambda kind: kind == _SYMTAB)]) if tables else []
    functions.sort()
    starts, ends, names = ([list(column) for column in zip(*functions, strict=True)]) if functions else ([], [], [])
    return Symbols(tuple(segments), starts, ends, names)


def _functions(data: mmap.mmap, offset: int, size: int, names_at: int) -> list[tuple[int, int, str]]:
    if size // 24 > _MOST_SYMBOLS:
        raise BadElf("damaged: too many symbols")
    found = []
    for name, info, _, section, value, length in struct.iter_unpack("<IBBHQQ", data[offset : offset + size // 24 * 24]):
        if info & 15 in (_FUNCTION, _INDIRECT_FUNCTION) and section and value:
            start = names_at + name
            end = data.find(b"\0", start, start + 4096)
            found.append(
                (value, value + length, data[start : end if end > 0 else start + 256].decode(errors="replace"))
            )
    return found
