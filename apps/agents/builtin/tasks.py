"""What is to be placed among loops: statements with the axes they are to be reached for, and which go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from apps.agents.builtin.form import Expr, Fold, walk
from apps.agents.builtin.index import Axis
from apps.agents.builtin.nest import Accumulate, Store
from apps.agents.builtin.targets import replace_nodes


class Stuck(Exception):
    """A fold that would be computed again and again; it has to be stored first."""

    def __init__(self, fold: Fold) -> None:
        super().__init__("a fold has no place")
        self.fold = fold


@dataclass(frozen=True)
class Task:
    """A statement to reach for all points of axes."""

    axes: tuple[Axis, ...]
    statement: Store | Accumulate
    needs: tuple[Expr, ...]

    def within(self, bound: frozenset[Axis]) -> Task:
        return replace(self, axes=tuple(axis for axis in self.axes if axis not in bound))


@dataclass(frozen=True)
class Group:
    """Tasks that loop together: over `first`, then further; or, where that is empty, over the same axes at once."""

    first: tuple[Axis, ...]
    tasks: tuple[Task, ...]


def groups(tasks: Sequence[Task], bound: frozenset[Axis], known: frozenset[Fold]) -> list[Group]:
    table: dict[tuple[bool, frozenset[Axis]], list[Task]] = {}
    for task in tasks:
        first = _first_axes(task, known)
        table.setdefault((bool(first), first or frozenset(task.axes)), []).append(task)
    return [
        Group(tuple(axis for axis in members[0].axes if axis in axes) if folds else (), tuple(members))
        for (folds, axes), members in table.items()
    ]


def _first_axes(task: Task, known: frozenset[Fold]) -> frozenset[Axis]:
    """The axes that must be bound before the first of a task's folds can be computed. Raises `Stuck`."""
    mine = frozenset(task.axes)
    wanted = {fold: fold.axes & mine for fold in unknown_folds([task], known)}
    needs = [axes for axes in wanted.values() if axes]
    if not needs:
        for fold in wanted:
            raise Stuck(fold)
        return frozenset()
    first = min(needs, key=lambda axes: (len(axes), sorted(axis.number for axis in axes)))
    for fold, axes in wanted.items():
        if not first <= axes:
            raise Stuck(fold)
    return first


def unknown_folds(tasks: Sequence[Task], known: frozenset[Fold]) -> list[Fold]:
    """All folds, nested ones too, that the tasks read and that are not computed yet; inner ones first."""
    found: dict[Fold, None] = {}
    seen: set[Expr] = set()
    stack = [(need, False) for task in reversed(tasks) for need in reversed(task.needs)]
    while stack:
        node, ready = stack.pop()
        if ready:
            if isinstance(node, Fold):
                found[node.whole] = None
        elif node not in seen and not (isinstance(node, Fold) and node.whole in known):
            seen.add(node)
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))
    return list(found)


def ranked(ready: Sequence[Fold]) -> list[list[Fold]]:
    """Folds in groups that can be accumulated together: none reads another of its group, all over the same axes."""
    rank: dict[Fold, int] = {}
    for fold in ready:  # inner ones come first
        inside = [rank[n.whole] for n in walk(*fold.parts) if isinstance(n, Fold) and n.whole in rank]
        rank[fold] = 1 + max(inside, default=0)
    table: dict[tuple[int, frozenset[Axis]], list[Fold]] = {}
    for fold in ready:
        table.setdefault((rank[fold], frozenset(fold.bound)), []).append(fold)
    return [table[key] for key in sorted(table, key=lambda key: key[0])]


def reading(task: Task, table: Mapping[Expr, Expr]) -> Task:
    """The task with what it reads replaced; a fold accumulates what it says, so that others know it by that."""
    if not table or not isinstance(task.statement, Store):
        return task
    value = replace_nodes(task.statement.value, table)
    return Task(task.axes, replace(task.statement, value=value), (value,))
