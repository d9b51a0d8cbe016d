"""What is to be computed, spelled for loops: each target is an element of a buffer for each point of its axes.

Axes are respelled so that addresses become plain sums: an axis that is divided somewhere is split in two, and two axes
that always step through memory as one are joined. Neither changes any value.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from apps.agents.builtin.form import (
    Buffer,
    Def,
    Expr,
    Fold,
    Load,
    Position,
    Scan,
    substitute,
    transform,
    walk,
)
from apps.agents.builtin.index import Axis, Index, joined

_RESPELLED = 1000


@dataclass(frozen=True)
class Target:
    """buffer[offset] = body for each point of `axes`, in this order of significance."""

    buffer: Buffer
    axes: tuple[Axis, ...]
    offset: Index
    body: Expr


def target_of(name: str, value: Def) -> Target:
    """A value as a contiguous buffer of that name."""
    elements = 1
    for size in value.shape:
        elements *= size
    offset = joined(tuple(Index.of(axis) for axis in value.axes), value.shape)
    axes = tuple(axis for axis in value.axes if axis.extent > 1)
    return Target(Buffer(name, value.dtype, elements), axes, offset, value.body)


def respelled(targets: Sequence[Target]) -> tuple[Target, ...]:
    """The targets with axes split where they are divided and joined where they step as one."""
    current = tuple(targets)
    numbers = itertools.count(_RESPELLED)
    while (division := _splittable(current)) is not None:
        axis, by = division
        high, low = Axis(next(numbers), axis.extent // by), Axis(next(numbers), by)
        current = _respell(
            current, (axis,), tuple(a for a in (high, low) if a.extent > 1), _split_values(axis, high, low)
        )
    while (pair := _joinable(current)) is not None:
        outer, inner = pair
        both = Axis(next(numbers), outer.extent * inner.extent)
        # The outer one becomes 0 and the inner one both: their steps were such that this is the same sum.
        current = _respell(current, pair, (both,), {outer: Index(), inner: Index.of(both)})
    return current


def sharing_memory(targets: Sequence[Target], products: set[str]) -> tuple[list[Target], tuple[tuple[str, str], ...]]:
    """Outputs that take the memory of a product of the same size, which is read at the output's own place alone.

    With (output, product) for each.
    """
    made, pairs = list(targets), []
    for i, target in enumerate(targets):
        product = _own_place(target, targets, products)
        if product is None:
            continue

        def change(node: Expr, old: Buffer = product, new: Buffer = target.buffer) -> Expr:
            return Load(new, node.offset) if isinstance(node, Load) and node.buffer == old else node

        made[i] = replace(target, body=transform(target.body, change))
        pairs.append((target.buffer.name, product.name))
    return made, tuple(pairs)


def _own_place(target: Target, targets: Sequence[Target], products: set[str]) -> Buffer | None:
    if any(isinstance(node, Fold | Scan) and node.axes for node in walk(target.body)):
        return None  # it may be written in tiles, and the last one reaches back
    within_folds = {node for one in walk(target.body) if isinstance(one, Fold) for node in walk(*one.parts)}
    loads: dict[Buffer, list[Load]] = {}
    for one in targets:
        for node in walk(one.body):
            if isinstance(node, Load) and node.buffer.name in products:
                loads.setdefault(node.buffer, []).append(node)
    for buffer, found in loads.items():
        alone = len(found) == 1 and found[0].offset == target.offset and not found[0].guards
        fits = buffer.dtype == target.buffer.dtype and buffer.elements == target.buffer.elements
        reads_here = any(node is found[0] for node in walk(target.body))
        elsewhere = any(node is found[0] for one in targets if one is not target for node in walk(one.body))
        if alone and fits and reads_here and not elsewhere and found[0] not in within_folds:
            return buffer
    return None


def split_folds(folds: Sequence[Fold], axis: Axis, pieces: int) -> tuple[tuple[Axis, Axis], list[tuple[Expr, ...]]]:
    """An axis that all these folds bind as `pieces` runs: (piece, place within it) and each fold's parts spelled with them."""
    numbers = {one.number for fold in folds for part in fold.parts for node in walk(part) for one in node.axes}
    numbers |= {one.number for fold in folds for one in fold.bound}
    top = max([_RESPELLED * 2, *numbers])
    piece, place = Axis(top + 1, pieces), Axis(top + 2, axis.extent // pieces)
    values = _split_values(axis, piece, place)
    return (piece, place), [tuple(substitute(part, values) for part in fold.parts) for fold in folds]


def _split_values(axis: Axis, high: Axis, low: Axis) -> dict[Axis, Index]:
    return {axis: Index.of(high) * low.extent + Index.of(low)}


def indices(*roots: Expr) -> Iterator[Index]:
    """Every index that an expression uses: addresses, guards, positions."""
    for node in walk(*roots):
        if isinstance(node, Load):
            yield node.offset
            for guard in node.guards:
                yield guard.index
        elif isinstance(node, Position):
            yield node.index
        elif isinstance(node, Scan):
            yield node.at


def _all_indices(targets: Sequence[Target]) -> list[Index]:
    found = dict.fromkeys(indices(*(target.body for target in targets)))
    found.update(dict.fromkeys(target.offset for target in targets))
    return list(found)


def _splittable(targets: Sequence[Target]) -> tuple[Axis, int] | None:
    running = {n.bound for n in walk(*(target.body for target in targets)) if isinstance(n, Scan)}
    for index in _all_indices(targets):
        for division in index.divisions():
            terms = division.of.terms
            if len(terms) != 1 or terms[0][1] != 1 or division.of.constant:
                continue
            axis = terms[0][0]
            if isinstance(axis, Axis) and axis.extent % division.by == 0 and axis not in running:
                return axis, division.by
    return None


def _joinable(targets: Sequence[Target]) -> tuple[Axis, Axis] | None:
    binders = _binders(targets)
    used = _all_indices(targets)
    pairs = dict.fromkeys(pair for binder in binders for pair in itertools.permutations(binder, 2))
    for outer, inner in pairs:
        together = all((outer in binder) == (inner in binder) for binder in binders)
        if together and all(_steps_as_one(index, outer, inner) for index in used):
            return outer, inner
    return None


def _steps_as_one(index: Index, outer: Axis, inner: Axis) -> bool:
    far, near = index.coefficient(outer), index.coefficient(inner)
    return far is not None and near is not None and far == near * inner.extent


def _binders(targets: Sequence[Target]) -> list[tuple[Axis, ...]]:
    binders = [target.axes for target in targets]
    for node in walk(*(target.body for target in targets)):
        if isinstance(node, Fold):
            binders.append(node.bound)
        elif isinstance(node, Scan):
            binders.append((node.bound,))
    return list(dict.fromkeys(binders))


def _respell(
    targets: Sequence[Target], old: Sequence[Axis], new: tuple[Axis, ...], values: Mapping[Axis, Index]
) -> tuple[Target, ...]:
    """Replace axes by others everywhere, in targets and in folds, taking the place of the last of them."""

    def axes(present: tuple[Axis, ...]) -> tuple[Axis, ...]:
        if old[-1] not in present:
            return present
        made: list[Axis] = []
        for axis in present:
            if axis == old[-1]:
                made.extend(new)
            elif axis not in old:
                made.append(axis)
        return tuple(made)

    def change(node: Expr) -> Expr:
        if isinstance(node, Fold) and old[-1] in node.bound:
            return Fold(node.monoid, axes(node.bound), tuple(substitute(p, values) for p in node.parts), node.part)
        return node

    def spelled(target: Target) -> Target:
        body = transform(target.body, change)
        if old[-1] not in target.axes:
            return replace(target, body=body)
        return replace(target, axes=axes(target.axes), offset=target.offset.at(values), body=substitute(body, values))

    return tuple(spelled(target) for target in targets)


def replace_nodes(node: Expr, table: Mapping[Expr, Expr]) -> Expr:
    """The expression with nodes replaced, outermost first; what replaces is left as it is."""
    done: dict[Expr, Expr] = dict(table)

    def visit(one: Expr) -> Expr:
        if one not in done:
            from apps.agents.builtin.form import rebuild

            done[one] = rebuild(one, visit)
        return done[one]

    for one in walk(node):
        visit(one)
    return visit(node)
