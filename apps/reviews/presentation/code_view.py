"""The code under review: whole or as a diff, each line of it with the threads that are about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.safestring import SafeString

from apps.reviews.presentation.threads import Thread
from apps.runs.presentation.code import code_lines
from apps.runs.presentation.diffs import Line, Stretch, diff

VIEWS = (("split", "side by side"), ("unified", "unified"), ("code", "whole file"))


@dataclass(frozen=True)
class Row:
    """One line. `number` is its number in the proposed text, None for a line that is only in what it is compared with."""

    kind: str
    left_number: int | None
    left: SafeString
    number: int | None
    right: SafeString
    threads: tuple[Thread, ...] = ()
    is_composing: bool = False


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


def whole(source: str, remarks: tuple[str, ...], threads: Sequence[Thread], composing: int | None) -> CodeView:
    """Every line, coloured."""
    by_line = _by_line(threads)
    rows = tuple(
        Row(
            "same", None, SafeString(""), line.number, line.html, by_line.get(line.number, ()), line.number == composing
        )
        for line in code_lines(source, remarks)
    )
    return CodeView("code", (Block(rows),))


def compared(base: str, source: str, view: str, threads: Sequence[Thread], composing: int | None) -> CodeView:
    """What changes from `base` to `source`; stretches with a thread in them are never folded."""
    found = diff(base, source)
    by_line = _by_line(threads)
    blocks = [_block(stretch, view, by_line, composing) for stretch in found.stretches]
    return CodeView(view, tuple(blocks), found.added, found.removed, found.same)


def _block(stretch: Stretch, view: str, by_line: dict[int, tuple[Thread, ...]], composing: int | None) -> Block:
    lines = _one_below_the_other(stretch.lines) if view == "unified" else stretch.lines
    rows = tuple(
        Row(
            line.kind,
            line.left_number,
            line.left,
            line.right_number,
            line.right,
            by_line.get(line.right_number or 0, ()),
            composing is not None and line.right_number == composing,
        )
        for line in lines
    )
    busy = any(row.threads or row.is_composing for row in rows)
    return Block(rows, stretch.folded and not busy)


def _one_below_the_other(lines: Iterable[Line]) -> list[Line]:
    """Removed lines first, then added ones, as a unified diff has them."""
    lines, nothing = list(lines), SafeString("")
    if all(line.kind == "same" for line in lines):
        return lines
    removed = [Line("del", line.left_number, line.left, None, nothing) for line in lines if line.left_number]
    added = [Line("add", None, nothing, line.right_number, line.right) for line in lines if line.right_number]
    return removed + added


def _by_line(threads: Sequence[Thread]) -> dict[int, tuple[Thread, ...]]:
    found: dict[int, tuple[Thread, ...]] = {}
    for thread in threads:
        if thread.last is not None:
            found[thread.last] = (*found.get(thread.last, ()), thread)
    return found
