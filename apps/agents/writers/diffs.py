"""Unified diffs as models write them: with wrong line numbers, lost blanks and no headers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from apps.agents.writers.unusable import Unusable

_HUNK = re.compile(r"^@@+(?:\s*-(\d+)(?:,\d+)?\s+\+\d+(?:,\d+)?)?")
_HEADER = re.compile(r"^(diff --git|index [0-9a-f]+|new file|rename |similarity )")


@dataclass(frozen=True)
class Hunk:
    """Lines to be found, what stands in their place afterwards, and the line (from 0) where they are said to be."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    at: int | None


def is_diff(text: str) -> bool:
    """Whether it is one, whatever its fence is called."""
    return bool(re.search(r"^@@", text, re.MULTILINE)) and bool(re.search(r"^[+-]", text, re.MULTILINE))


def applied(base: str, text: str) -> str:
    """The base with the diff applied. Raises `Unusable`, naming the hunk that has no place."""
    lines, shift = base.splitlines(), 0
    found = hunks(text)
    if not found:
        raise Unusable("the diff changes nothing. Give the whole file instead")
    for number, hunk in enumerate(found, start=1):
        at = _place(lines, hunk, shift)
        if at is None:
            first = next((line for line in hunk.old if line.strip()), "")
            raise Unusable(
                f"hunk {number} of the diff fits nowhere in the version it should change (it begins {first.strip()[:60]!r}). "
                "Give the whole file instead"
            )
        lines[at : at + len(hunk.old)] = hunk.new
        shift += len(hunk.new) - len(hunk.old)
    return "\n".join(lines) + "\n"


def hunks(text: str) -> list[Hunk]:
    """The hunks of a diff, in order, without those that change nothing."""
    groups: list[tuple[int | None, list[str]]] = []
    lines = text.splitlines()
    skip = False
    for i, line in enumerate(lines):
        if skip or _HEADER.match(line) or line.startswith("\\ "):
            skip = False
            continue
        if line.startswith("--- ") and i + 1 < len(lines) and lines[i + 1].startswith("+++ "):
            skip = True
            continue
        if (start := _HUNK.match(line)) is not None:
            groups.append((int(start.group(1)) - 1 if start.group(1) else None, []))
            continue
        if not groups:
            groups.append((None, []))
        groups[-1][1].append(line)
    made = [_hunk(at, body) for at, body in groups]
    return [hunk for hunk in made if hunk.old != hunk.new]


def _hunk(at: int | None, body: list[str]) -> Hunk:
    while body and not body[-1].strip():  # blank lines before the fence belong to no hunk
        body.pop()
    old = tuple(line[1:] for line in body if not line.startswith("+"))
    new = tuple(line[1:] for line in body if not line.startswith("-"))
    return Hunk(old, new, at)


def _place(lines: list[str], hunk: Hunk, shift: int) -> int | None:
    """Where the old lines stand: exactly, else but for blanks at the ends; of several places the one nearest."""
    wanted = None if hunk.at is None else hunk.at + shift
    if not hunk.old:
        return None if wanted is None else min(max(wanted + 1, 0), len(lines))
    for same in (lambda line: line, str.rstrip, str.strip):
        old = [same(line) for line in hunk.old]
        have = [same(line) for line in lines]
        places = [i for i in range(len(have) - len(old) + 1) if have[i : i + len(old)] == old]
        if len(places) == 1:
            return places[0]
        if places:
            return None if wanted is None else min(places, key=lambda place: abs(place - wanted))
    return None
