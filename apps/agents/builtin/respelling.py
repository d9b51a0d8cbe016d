"""Tasks spelled with other axes: within tiles, and from the end of an axis to its start; and what scans go along."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from apps.agents.builtin.form import Expr, scans_read, substitute
from apps.agents.builtin.index import Axis, Index
from apps.agents.builtin.nest import Piece, Store
from apps.agents.builtin.tasks import Task

# The start of a tile and the place within it, as axes that no problem has.
START, PLACE = 90_000, 90_001


def spelled_in_tiles(tasks: Sequence[Task], piece: Piece) -> tuple[list[Task], frozenset[Axis]]:
    """The tasks with the axis as start and place within a tile, and these two as far as they are spelled."""
    assert piece.place is not None
    here = frozenset((piece.place,) if piece.start is None else (piece.start, piece.place))
    values = {piece.axis: sum((Index.of(axis) for axis in here), Index())}
    made = []
    for task in tasks:
        statement = task.statement
        assert isinstance(statement, Store)
        value = substitute(statement.value, values)
        made.append(Task(task.axes, replace(statement, offset=statement.offset.at(values), value=value), (value,)))
    return made, here


# An axis walked from its end, as one that no problem has.
_TURNED = 90_002


def scanned_axis(body: Expr) -> Axis | None:
    """The one axis along which all scans that an expression reads go, each to its own place; None where it isn't so."""
    scans = scans_read(body)
    places = {scan.at for scan in scans}
    if len(places) != 1:
        return None
    (at,) = places
    if len(at.terms) != 1 or not isinstance(at.terms[0][0], Axis) or at.range()[0] != 0:
        return None
    axis, step = at.terms[0]
    assert isinstance(axis, Axis)
    return axis if step in (1, -1) and all(axis not in scan.part.axes for scan in scans) else None


def backwards(body: Expr) -> bool:
    """Whether the scans that an expression reads go from the end of their axis to its start."""
    return any(step < 0 for scan in scans_read(body) for _, step in scan.at.terms)


def turned(task: Task, axis: Axis) -> tuple[Axis, Task]:
    """The task with an axis counted from its end, so that its scans go forwards."""
    assert isinstance(task.statement, Store)
    other = Axis(_TURNED, axis.extent)
    values = {axis: Index.of(axis.extent - 1) - Index.of(other)}
    value = substitute(task.statement.value, values)
    store = replace(task.statement, offset=task.statement.offset.at(values), value=value)
    return other, Task(tuple(other if one == axis else one for one in task.axes), store, (value,))
