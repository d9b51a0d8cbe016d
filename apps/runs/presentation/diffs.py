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
    codes = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    for place, (tag, a0, a1, b0, b1) in enumerate(codes):
        if tag == "equal":
            stretches += _unchanged(a[a0:a1], a0, b0, first=place == 0, last=place == len(codes) - 1)
            continue
        added, removed = added + b1 - b0, removed + a1 - a0
        stretches.append(Stretch(tuple(_changed(a[a0:a1], a0, b[b0:b1], b0))))
    return Diff(tuple(stretches), added, removed)


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
    a, b = _WORDS.findall(old), _WORDS.findall(new)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return escape(old), escape(new)
    left, right = [], []
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        gone, come = "".join(a[a0:a1]), "".join(b[b0:b1])
        left.append(escape(gone) if tag == "equal" or not gone.strip() else f"<mark>{escape(gone)}</mark>")
        right.append(escape(come) if tag == "equal" or not come.strip() else f"<mark>{escape(come)}</mark>")
    return mark_safe("".join(left)), mark_safe("".join(right))  # noqa: S308 - every part was escaped above
