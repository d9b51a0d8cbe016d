"""Which axis a loop walks along, in which order the others come, and how wide its elements are."""

from __future__ import annotations

import math
from collections.abc import Sequence

from apps.agents.builtin.form import SIZES, Expr, Fold, Load, Op, Position, walk
from apps.agents.builtin.index import Axis, Index
from apps.agents.builtin.nest import Store
from apps.agents.builtin.tasks import Task


def best_axis(tasks: Sequence[Task], axes: Sequence[Axis]) -> Axis | None:
    """The axis along which most elements lie next to each other, None where none does."""
    scores = dict.fromkeys(axes, 0)
    for index in dict.fromkeys(addresses(tasks)):
        weight = math.prod(axis.extent for axis in index.axes())
        for axis in axes:
            if index.coefficient(axis) in (1, -1):
                scores[axis] += weight
    long = [axis for axis in axes if axis.extent >= SHORT and scores[axis]]
    best = max(long or axes, key=lambda axis: scores[axis], default=None)
    return best if best is not None and scores[best] else None


# An axis of fewer elements fills no vector: it is walked along only where there is no other.
SHORT = 8


def addresses(tasks: Sequence[Task]) -> list[Index]:
    found = [node.offset for node in walk(*(need for task in tasks for need in task.needs)) if isinstance(node, Load)]
    return found + [task.statement.offset for task in tasks if isinstance(task.statement, Store)]


def by_step(axes: tuple[Axis, ...], tasks: Sequence[Task]) -> tuple[Axis, ...]:
    """Axes in order of how far they step through memory, the farthest outermost."""
    found = addresses(tasks)
    return tuple(sorted(axes, key=lambda axis: -max((abs(i.coefficient(axis) or 0) for i in found), default=0)))


def bound_axes(tasks: Sequence[Task]) -> set[Axis]:
    needs = [need for task in tasks for need in task.needs]
    return {axis for node in walk(*needs) if isinstance(node, Fold) for axis in node.bound}


def widest(tasks: Sequence[Task], axis: Axis) -> int:
    """Bytes of the widest type computed with along an axis. A position cast to 32 bits is made in 32 bits."""
    narrow: set[Expr] = {
        node.args[0]
        for node in walk(*(need for task in tasks for need in task.needs))
        if isinstance(node, Op) and node.name == "cast" and node.dtype == "int32" and isinstance(node.args[0], Position)
    }
    narrow |= {task.statement.value for task in tasks if isinstance(task.statement, Store) and widens(task.statement)}
    size = 4
    for node in walk(*(need for task in tasks for need in task.needs)):
        if axis in node.axes and node not in narrow and node.dtype != "bool":
            size = max(size, SIZES[node.dtype])
    return size


def widens(store: Store) -> bool:
    """Whether a store only makes whole numbers of 64 bits of those of 32, which it can do by halves of a vector."""
    value = store.value
    return isinstance(value, Op) and value.name == "cast" and (value.args[0].dtype, value.dtype) == ("int32", "int64")


def work(tasks: Sequence[Task]) -> int:
    """Elements touched, about."""
    return sum(math.prod(axis.extent for axis in index.axes()) for index in dict.fromkeys(addresses(tasks)))
