"""Two texts side by side or unified: word by word where lines were changed, unchanged stretches folded."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

_CONTEXT = 3
_WORDS = re.compile(r"""\"[^\"\s]*\"|\w+|\s+|[^\w\s]""")
# Below this likeness marking words would paint the whole line.
_ALIKE = 0.35
# Comparing every line with every other takes seconds beyond this; frequent lines are then no anchors (difflib's own rule).
_EVERY_LINE = 1500
_LONGEST_FOR_WORDS = 500  # characters: generated tables are one line of thousands


@dataclass(frozen=True)
class Line:
    """One row of the diff. `kind` is same, add, del or change; a side without a line has no number."""

    kind: str
    left_number: int | None
    left: SafeString
    right_number: int | None
    right: SafeString


@dataclass(frozen=True)
class Stretch:
    """Rows shown together; folded ones open on demand."""

    lines: tuple[Line, ...]
    folded: bool = False


@dataclass(frozen=True)
class Diff:
    """The whole comparison."""

    stretches: tuple[Stretch, ...]
    added: int
    removed: int

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return not self.added and not self.removed


def diff(left: str, right: str) -> Diff:
    """What has to be done to `left` to get `right`. Everything in it is escaped."""
    a, b = left.splitlines(), right.splitlines()
    stretches: list[Stretch] = []
    added = removed = 0
    codes = _opcodes(a, b)
    for place, (tag, a0, a1, b0, b1) in enumerate(codes):
        if tag == "equal":
            stretches += _unchanged(a[a0:a1], a0, b0, first=place == 0, last=place == len(codes) - 1)
            continue
        added, removed = added + b1 - b0, removed + a1 - a0
        stretches.append(Stretch(tuple(_changed(a[a0:a1], a0, b[b0:b1], b0))))
    return Diff(tuple(stretches), added, removed)


def _opcodes(a: Sequence[str], b: Sequence[str]) -> list[tuple[str, int, int, int, int]]:
    """How `a` becomes `b`. What both begin and end with is found at once, only what lies between is searched."""
    head = 0
    while head < min(len(a), len(b)) and a[head] == b[head]:
        head += 1
    tail = 0
    while tail < min(len(a), len(b)) - head and a[-1 - tail] == b[-1 - tail]:
        tail += 1
    within_a, within_b = a[head : len(a) - tail], b[head : len(b) - tail]
    frequent = max(len(within_a), len(within_b)) > _EVERY_LINE
    codes = [("equal", 0, head, 0, head)] if head else []
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, within_a, within_b, autojunk=frequent).get_opcodes():
        codes.append((tag, a0 + head, a1 + head, b0 + head, b1 + head))
    return [*codes, ("equal", len(a) - tail, len(a), len(b) - tail, len(b))] if tail else codes


def _unchanged(lines: Sequence[str], a0: int, b0: int, *, first: bool, last: bool) -> Iterator[Stretch]:
    rows = [_same(text, a0 + i, b0 + i) for i, text in enumerate(lines)]
    head, tail = (0 if first else _CONTEXT), (0 if last else _CONTEXT)
    if len(rows) <= head + tail + 1:
        yield Stretch(tuple(rows))
        return
    middle = rows[head : len(rows) - tail]
    for part, folded in ((rows[:head], False), (middle, True), (rows[len(rows) - tail :], False)):
        if part:
            yield Stretch(tuple(part), folded)


def _same(text: str, i: int, j: int) -> Line:
    shown = escape(text)
    return Line("same", i + 1, shown, j + 1, shown)


def _changed(a: Sequence[str], a0: int, b: Sequence[str], b0: int) -> Iterator[Line]:
    """Removed and added lines: paired in order where they are alike, so that words can be marked."""
    for i in range(max(len(a), len(b))):
        old, new = (a[i] if i < len(a) else None), (b[i] if i < len(b) else None)
        if old is not None and new is not None:
            left, right = _words(old, new)
            yield Line("change", a0 + i + 1, left, b0 + i + 1, right)
        elif old is not None:
            yield Line("del", a0 + i + 1, escape(old), None, SafeString(""))
        elif new is not None:
            yield Line("add", None, SafeString(""), b0 + i + 1, escape(new))


def _words(old: str, new: str) -> tuple[SafeString, SafeString]:
    if max(len(old), len(new)) > _LONGEST_FOR_WORDS:
        return escape(old), escape(new)
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    if matcher.real_quick_ratio() < _ALIKE or matcher.quick_ratio() < _ALIKE or matcher.ratio() < _ALIKE:
        return escape(old), escape(new)
    left, right = [], []
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        gone, come = "".join(a[a0:a1]), "".join(b[b0:b1])
        left.append(escape(gone) if tag == "equal" or not gone.strip() else f"<mark>{escape(gone)}</mark>")
        right.append(escape(come) if tag == "equal" or not come.strip() else f"<mark>{escape(come)}</mark>")
    return mark_safe("".join(left)), mark_safe("".join(right))  # noqa: S308 - every part was escaped above
