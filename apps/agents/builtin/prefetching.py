"""Rows asked for ahead: while one row is worked on in several passes, memory would wait; it can bring the next row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from apps.agents.builtin.form import SIZES, Buffer, Load, Op, walk
from apps.agents.builtin.index import Axis, Index
from apps.agents.builtin.nest import Accumulate, Folds, For, Statement, Store, Vec, statements_in
from apps.agents.builtin.scalars import SCALARS

# Of a row: with the row that is worked on it has to fit a usual second-level cache.
LONGEST_AHEAD = 64 << 10

Place = tuple[Buffer, Index]


def asking_ahead(body: Sequence[Statement], row: Axis) -> list[Statement]:
    """The passes over a row, the one with most work among those after the first asking for the next row.

    Left as they are where there is one pass alone, or rows are long, or what the first pass reads is not a row's own.
    """
    passes = [one for one in statements_in(*body) if isinstance(one, Vec)]
    if len(passes) < 2 or any(isinstance(one, For) for one in statements_in(*body)):
        return list(body)
    places = _own_places(passes[0], row)
    later = [one for one in passes[1:] if one.axis.extent == passes[0].axis.extent and one.lanes > 1]
    if not places or not later:
        return list(body)
    busiest = max(later, key=_work)
    there = {passes[0].axis: Index.of(busiest.axis), row: Index.of(row) + 1}
    ahead = tuple((buffer, offset.at(there)) for buffer, offset in places)
    return _replaced(body, busiest, replace(busiest, ahead=ahead))


def _own_places(first: Vec, row: Axis) -> list[Place]:
    found: dict[Place, None] = {}
    for statement in first.body:
        roots = (statement.value,) if isinstance(statement, Store) else statement.fold.parts
        for node in walk(*roots, folds=False):
            if isinstance(node, Load) and not node.guards and _runs_on(node, first.axis, row):
                found[node.buffer, node.offset] = None
    return list(found)


def _runs_on(load: Load, along: Axis, row: Axis) -> bool:
    """Whether a load walks along memory, and the next row is elsewhere and not too long."""
    step = load.offset.coefficient(row)
    short = along.extent * SIZES[load.buffer.dtype] <= LONGEST_AHEAD
    return bool(step) and short and load.offset.coefficient(along) == 1


def _work(one: Vec) -> float:
    roots = [p for s in one.body for p in ((s.value,) if isinstance(s, Store) else s.fold.parts)]
    folds = sum(isinstance(statement, Accumulate) for statement in one.body)
    return folds + sum(SCALARS[node.name].work for node in walk(*roots, folds=False) if isinstance(node, Op))


def _replaced(body: Sequence[Statement], old: Vec, new: Vec) -> list[Statement]:
    made: list[Statement] = []
    for one in body:
        if isinstance(one, Folds):
            one = replace(one, body=tuple(_replaced(one.body, old, new)))
        made.append(new if one is old else one)
    return made
