"""The code under review: whole or as a diff, each line of it with the threads that are about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from apps.reviews.models import Side
from apps.reviews.presentation.threads import Thread
from apps.runs.presentation.code import code_lines
from apps.runs.presentation.diffs import Line, Stretch, diff

VIEWS = (("split", "side by side"), ("unified", "unified"), ("code", "whole file"))


@dataclass(frozen=True)
class Spot:
    """A line of one side."""

    side: Side
    line: int

    @property
    def key(self) -> str:
        """As addresses name it."""
        return f"o{self.line}" if self.side == Side.OLD else str(self.line)

    @classmethod
    def read(cls, text: str) -> Spot | None:
        """`12` on the new side, `o12` on the old one; None for anything else."""
        digits = text.removeprefix("o")
        if not digits.isdecimal() or len(digits) > 6:
            return None
        return cls(Side.NEW if digits == text else Side.OLD, int(digits))


@dataclass(frozen=True)
class Row:
    """One line. `number` is its number in the proposed text, None for a line that is only in what it is compared with."""

    kind: str
    left_number: int | None
    left: SafeString
    number: int | None
    right: SafeString
    threads: tuple[Thread, ...] = ()
    composing: Spot | None = None

    @property
    def removed(self) -> int | None:
        """Its number on the old side, where it is no longer so on the new one."""
        return self.left_number if self.kind in ("del", "change") else None

    @property
    def old_spot(self) -> str:
        """That line as an address names it."""
        return f"o{self.removed}"


@dataclass(frozen=True)
class Block:
    """Rows shown together; folded ones open on demand."""

    rows: tuple[Row, ...]
    folded: bool = False


@dataclass(frozen=True)
class CodeView:
    """The code as it is looked at. `same` says that the diff is empty."""

    view: str
    blocks: tuple[Block, ...]
    added: int = 0
    removed: int = 0
    same: bool = False


def whole(source: str, remarks: tuple[str, ...], threads: Sequence[Thread], composing: Spot | None) -> CodeView:
    """Every line, coloured."""
    talk = _Talk.of(threads, composing)
    lines = code_lines(source, remarks)
    rows = (Row("same", None, SafeString(""), line.number, line.html, *talk.at(None, line.number)) for line in lines)
    return CodeView("code", (Block(tuple(rows)),))


def compared(base: str, source: str, view: str, threads: Sequence[Thread], composing: Spot | None) -> CodeView:
    """What changes from `base` to `source`; stretches with a thread in them are never folded."""
    found = diff(base, source)
    talk = _Talk.of(threads, composing)
    blocks = [_block(stretch, view, talk) for stretch in found.stretches]
    return CodeView(view, tuple(blocks), found.added, found.removed, found.same)


@dataclass(frozen=True)
class _Talk:
    """What is said of which line, and where something is being written."""

    threads: dict[Spot, tuple[Thread, ...]]
    composing: Spot | None

    @classmethod
    def of(cls, threads: Sequence[Thread], composing: Spot | None) -> _Talk:
        """Each thread below its last line."""
        found: dict[Spot, tuple[Thread, ...]] = {}
        for thread in threads:
            if thread.place is not None:
                spot = Spot(thread.place.side, thread.place.last)
                found[spot] = (*found.get(spot, ()), thread)
        return cls(found, composing)

    def at(self, left: int | None, right: int | None) -> tuple[tuple[Thread, ...], Spot | None]:
        """The threads of a row with these numbers, and the spot in it that is being written about."""
        spots = [Spot(Side.OLD, left or 0), Spot(Side.NEW, right or 0)]
        threads = tuple(thread for spot in spots for thread in self.threads.get(spot, ()))
        return threads, self.composing if self.composing in spots else None


def _block(stretch: Stretch, view: str, talk: _Talk) -> Block:
    lines = _one_below_the_other(stretch.lines) if view == "unified" else stretch.lines
    rows = tuple(
        Row(
            line.kind,
            line.left_number,
            line.left,
            line.right_number,
            line.right,
            *talk.at(line.left_number, line.right_number),
        )
        for line in lines
    )
    busy = any(row.threads or row.composing for row in rows)
    return Block(rows, stretch.folded and not busy)


def _one_below_the_other(lines: Iterable[Line]) -> list[Line]:
    """Removed lines first, then added ones, as a unified diff has them."""
    lines, nothing = list(lines), SafeString("")
    if all(line.kind == "same" for line in lines):
        return lines
    removed = [Line("del", line.left_number, line.left, None, nothing) for line in lines if line.left_number]
    added = [Line("add", None, nothing, line.right_number, line.right) for line in lines if line.right_number]
    return removed + added
