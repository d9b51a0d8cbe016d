"""The lines of a candidate that a failure may lie in, with their numbers: what a reading of it needs to see, and no more."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

_NAMED = re.compile(r"\bcandidate\.py:(\d+)|\bline (\d+)")
_QUOTED = re.compile(r"^\s*\d+ \|(?P<code>.*)$", re.MULTILINE)  # a compiler shows a line of the text it was given
_AROUND = 15  # lines on each side of one that the error names
_LEFT_OUT = "..."


def numbered(source: str, error: str) -> str:
    """The lines that the error names with those around them; where it names none, kernels and `ModelNew`.

    Numbers count from 1. What is left out leaves a mark; of a source that doesn't parse nothing is.
    """
    lines = source.splitlines()
    named = _named(lines, error)
    wanted = _around(named, len(lines)) if named else _working(source) or set(range(1, len(lines) + 1))
    width = len(str(len(lines)))
    shown, last = [], 0
    for number in sorted(wanted):
        if number > last + 1:
            shown.append(_LEFT_OUT)
        shown.append(f"{number:{width}} | {lines[number - 1]}".rstrip())
        last = number
    if last < len(lines):
        shown.append(_LEFT_OUT)
    return "\n".join(shown)


def _named(lines: list[str], error: str) -> set[int]:
    """Lines that the error gives by number, or quotes: a kernel's lines are counted otherwise by its compiler."""
    found = {int(match.group(1) or match.group(2)) for match in _NAMED.finditer(error)}
    quoted = {match["code"].strip() for match in _QUOTED.finditer(error)} - {""}
    found |= {number for number, line in enumerate(lines, start=1) if line.strip() in quoted}
    return {number for number in found if 1 <= number <= len(lines)}


def _around(named: Iterable[int], count: int) -> set[int]:
    return {near for number in named for near in range(max(1, number - _AROUND), min(count, number + _AROUND) + 1)}


def _working(source: str) -> set[int]:
    """The lines of long texts (kernels) and of classes: without imports and the functions that build and load."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found: set[int] = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.Assign | ast.AnnAssign):
            found |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found
