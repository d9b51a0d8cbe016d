"""Where a version comes from and what came of it: the whole family of a few versions, of many the shown one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.runs.models import Version
from apps.runs.presentation.measured import Measured

WHOLE = 60  # versions of a run whose family is shown whole
_ABOVE, _BELOW = 12, 30  # else: ancestors beside the first one, and children of the shown version
DEEPEST = 12  # steps that are indented; deeper ones stand below each other


@dataclass(frozen=True)
class Ancestor:
    """One version of the family tree, `depth` steps under the first, of which `indent` are drawn."""

    measured: Measured
    depth: int
    is_shown: bool

    @property
    def indent(self) -> int:
        """Steps to the right."""
        return min(self.depth, DEEPEST)


@dataclass(frozen=True)
class Lineage:
    """The family, parents before children; `left_out` versions of the run are no part of it."""

    tree: tuple[Ancestor, ...]
    left_out: int


def lineage(versions: Sequence[Measured], shown: Version) -> Lineage:
    """The family of a version among its run's."""
    by_key = {one.version.pk: one for one in versions}
    children: dict[int | None, list[int]] = {}
    for one in versions:
        parent = one.version.parent_id
        children.setdefault(parent if parent in by_key else None, []).append(one.version.pk)
    found = _downwards(children, None, 0) if len(versions) <= WHOLE else _family(by_key, children, shown.pk)
    tree = tuple(Ancestor(by_key[key], depth, key == shown.pk) for key, depth in found)
    return Lineage(tree, len(versions) - len(tree))


def _downwards(children: dict[int | None, list[int]], root: int | None, depth: int) -> list[tuple[int, int]]:
    """Everything below `root`, each with its depth; a run's chain may be longer than Python's stack."""
    found = []
    open_ones = [(key, depth) for key in reversed(children.get(root, []))]
    while open_ones:
        key, at = open_ones.pop()
        found.append((key, at))
        open_ones += [(child, at + 1) for child in reversed(children.get(key, []))]
    return found


def _family(by_key: dict[int, Measured], children: dict[int | None, list[int]], shown: int) -> list[tuple[int, int]]:
    """The first ancestor, the nearest ones, the version itself and its children."""
    path = [shown]
    while (parent := by_key[path[-1]].version.parent_id) in by_key:
        path.append(parent)
    path.reverse()
    numbered = list(zip(path, range(len(path)), strict=True))
    near = numbered if len(path) <= _ABOVE + 2 else [numbered[0], *numbered[-_ABOVE - 1 :]]
    return near + [(child, len(path)) for child in children.get(shown, [])[:_BELOW]]
