"""Operations that only say where an element comes from: index maps, which cost nothing."""

from __future__ import annotations

from collections.abc import Callable

from apps.agents.builtin.form import (
    COMPUTED,
    Const,
    Def,
    Expr,
    Fold,
    Guard,
    Load,
    Op,
    Position,
    Scan,
    axes_of,
    guarded_load,
    rebuild,
    walk,
)
from apps.agents.builtin.index import Axis, Index, joined, unjoined
from apps.agents.builtin.reading import Call, element, lowers, op
from apps.agents.words import CannotWrite

Indices = tuple[Index, ...]


def _mapped(call: Call, indices: Callable[[Indices], Indices]) -> Def:
    """The result's element at i is the operand's at `indices(i)`."""
    axes = axes_of(call.out.shape)
    body = call.tensor(0).at(indices(tuple(Index.of(axis) for axis in axes)))
    return Def(axes, body, call.out.dtype)


def _dimension(call: Call, position: int, rank: int) -> int:
    return int(call.arg(position, 0)) % max(1, rank)


@lowers("view", "_unsafe_view", "reshape", "_reshape_alias", "squeeze", "unsqueeze", "flatten")
def view(call: Call) -> Def:
    """The same elements in the same order under another shape."""
    shape, old = call.out.shape, call.tensor(0).shape
    return _mapped(call, lambda here: unjoined(joined(here, shape), old))


@lowers("permute", "transpose", "t")
def permute(call: Call) -> Def:
    """Dimensions in another order."""
    rank = len(call.tensor(0).shape)
    if call.node.op.startswith("aten.permute"):
        order = [int(one) % rank for one in call.arg(1)]
    else:
        order = list(range(rank))
        a, b = (0, rank - 1) if len(call.args) < 3 else (_dimension(call, 1, rank), _dimension(call, 2, rank))
        order[a], order[b] = order[b], order[a]
    return _mapped(call, lambda here: tuple(here[order.index(axis)] for axis in range(rank)))


@lowers("expand", "broadcast_to")
def expand(call: Call) -> Def:
    """Repeated along dimensions of size 1 or new ones."""
    axes = axes_of(call.out.shape)
    return Def(axes, element(call.tensor(0), axes), call.out.dtype)


@lowers("slice")
def slice_(call: Call) -> Def:
    """Every step-th element from a start on."""
    size = call.tensor(0).shape
    axis = _dimension(call, 1, len(size))
    start, step = call.arg(2) or 0, call.arg(4) or 1
    start = max(0, start + size[axis]) if start < 0 else min(start, size[axis])
    return _mapped(call, lambda here: tuple(one * step + start if i == axis else one for i, one in enumerate(here)))


@lowers("select")
def select(call: Call) -> Def:
    """One slice of a dimension, which goes."""
    size = call.tensor(0).shape
    axis = _dimension(call, 1, len(size))
    index = Index.of(int(call.arg(2)) % size[axis])
    return _mapped(call, lambda here: (*here[:axis], index, *here[axis:]))


@lowers("flip")
def flip(call: Call) -> Def:
    """Dimensions backwards."""
    size = call.tensor(0).shape
    turned = {int(one) % len(size) for one in call.arg(1)}
    return _mapped(
        call,
        lambda here: tuple(Index.of(size[i] - 1) - one if i in turned else one for i, one in enumerate(here)),
    )


@lowers("index_select")
def index_select(call: Call) -> Def:
    """Slices of a dimension by number, where the numbers follow from their place alone (as in a roll)."""
    chosen = call.tensor(2)
    axis = _dimension(call, 1, len(call.tensor(0).shape))
    place = as_index(chosen.body)
    if place is None:
        raise CannotWrite(f"{call.node.op} picks by numbers that are only known when it runs.")
    values = {chosen.axes[0]: axes_of(call.out.shape)[axis]} if chosen.axes else {}
    here_at = {old: Index.of(new) for old, new in values.items()}
    return _mapped(call, lambda here: tuple(place.at(here_at) if i == axis else one for i, one in enumerate(here)))


def as_index(node: Expr) -> Index | None:
    """A whole number computed from places and constants, as an index; None where there is more to it."""
    if isinstance(node, Position):
        return node.index
    if isinstance(node, Const) and isinstance(node.value, int):
        return Index.of(node.value)
    if not isinstance(node, Op) or node.dtype not in ("int64", "int32"):
        return None
    args = [as_index(arg) for arg in node.args]
    a, b = args[0], args[-1]
    if a is None or b is None:
        return None
    if node.name == "cast":
        return a
    if node.name in ("add", "sub"):
        return a + b if node.name == "add" else a - b
    if b.terms or b.constant <= 0:
        return None
    if node.name == "mul":
        return a * b.constant
    if node.name == "floor_divide":
        return a.quotient(b.constant)
    # C's remainder has the dividend's sign.
    whole = node.name == "remainder" or (node.name == "fmod" and a.range()[0] >= 0)
    return a.remainder(b.constant) if whole else None


@lowers("repeat")
def repeat(call: Call) -> Def:
    """The whole again and again along dimensions."""
    size = call.tensor(0).shape
    return _mapped(
        call,
        lambda here: tuple(one.remainder(n) for one, n in zip(here[len(here) - len(size) :], size, strict=True)),
    )


@lowers("constant_pad_nd")
def pad(call: Call) -> Def:
    """Elements of a number around the operand (negative widths cut some off)."""
    source, widths = call.tensor(0), call.arg(1)
    fill, rank, dtype = call.arg(2, 0), len(source.shape), COMPUTED[call.out.dtype]
    axes = axes_of(call.out.shape)
    before = [0] * rank
    for i in range(len(widths) // 2):
        before[rank - 1 - i] = widths[2 * i]
    indices = tuple(Index.of(axis) - shift for axis, shift in zip(axes, before, strict=True))
    return Def(axes, within(source, indices, element(fill, (), dtype)), call.out.dtype)


@lowers("cat")
def cat(call: Call) -> Def:
    """One behind the other along a dimension."""
    parts = [part for part in call.arg(0) if isinstance(part, Def) and part.shape != (0,)]
    if not parts:
        raise CannotWrite(f"{call.node.op} joins nothing.")
    dtype, axes = COMPUTED[call.out.dtype], axes_of(call.out.shape)
    along = _dimension(call, 1, len(axes))
    body: Expr = Const(0 if dtype not in ("float32", "float64") else 0.0, dtype)
    end = call.out.shape[along]
    for number, part in enumerate(reversed(parts)):
        begin = end - part.shape[along]
        indices = tuple(Index.of(axis) - begin if i == along else Index.of(axis) for i, axis in enumerate(axes))
        inside = element(Def(axes, within(part, indices, None), part.dtype), axes, dtype)
        chosen = Op("le", (Const(end, "int64"), Position(Index.of(axes[along]))), "bool")
        body = inside if number == 0 else op("select", chosen, body, inside)
        end = begin
    return Def(axes, body, call.out.dtype)


def within(source: Def, indices: Indices, fill: Expr | None) -> Expr:
    """The element at indices that may lie outside; there it is `fill` (or anything, where that is None)."""
    guards = []
    for index, axis in zip(indices, source.axes, strict=True):
        low, high = index.range()
        if low < 0 or high >= axis.extent:
            guards.append(Guard(index, axis.extent))
    here = source.at(indices)
    if guards and isinstance(here, Load) and not here.guards and isinstance(fill, Const):
        return guarded_load(here.buffer, here.offset, guards, fill.value)
    body = guarded(here, tuple(guards))
    if fill is None or not guards:
        return body
    return op("select", holds(tuple(guards)), body, fill)


def holds(guards: tuple[Guard, ...]) -> Expr:
    """Whether all guards hold, as a truth value."""
    tests: list[Expr] = []
    for guard in guards:
        position = Position(guard.index)
        low, high = guard.index.range()
        if low < 0:
            tests.append(Op("le", (Const(0, "int64"), position), "bool"))
        if high >= guard.extent:
            tests.append(Op("lt", (position, Const(guard.extent, "int64")), "bool"))
    made = tests[0]
    for test in tests[1:]:
        made = Op("and", (made, test), "bool")
    return made


def guarded(node: Expr, guards: tuple[Guard, ...]) -> Expr:
    """The node with its loads made only where the guards hold."""
    if not guards:
        return node
    done: dict[Expr, Expr] = {}

    def visit(one: Expr) -> Expr:
        if one not in done:
            if isinstance(one, Load):
                done[one] = guarded_load(one.buffer, one.offset, (*one.guards, *guards), one.fill)
            elif isinstance(one, Fold | Scan) and _bound(one) & frozenset().union(*(g.index.axes() for g in guards)):
                raise CannotWrite("A padded value folds over an axis of its own padding.")
            else:
                done[one] = rebuild(one, visit)
        return done[one]

    for one in walk(node):
        visit(one)
    return visit(node)


def _bound(node: Fold | Scan) -> frozenset[Axis]:
    return frozenset(node.bound if isinstance(node, Fold) else (node.bound,))
