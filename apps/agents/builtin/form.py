"""The form a problem's meaning is written in: what each element of a value is, with no word on how to compute it.

A value is `Def(axes, body)`: out[i, j, ..] = body. A body is made of loads at indices, constants, indices as numbers,
scalar operations, folds over further axes, and scans along one. Nodes are interned: equal ones are the same object, so
that sharing is seen and comparing is free. Only five types are computed in; buffers may hold others and are converted on
the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from apps.agents.builtin.index import Axis, Index

FLOATS = ("float32", "float64")
COMPUTED = {
    "float32": "float32", "float64": "float64", "bfloat16": "float32", "float16": "float32", "bool": "bool",
    "int64": "int64", "int32": "int32", "int16": "int32", "int8": "int32", "uint8": "int32",
}  # fmt: skip
SIZES = {
    "float32": 4, "float64": 8, "bfloat16": 2, "float16": 2, "bool": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1,
}  # fmt: skip


@dataclass(frozen=True)
class Buffer:
    """Memory by name: an argument, a parameter, a constant, an output or scratch, of `elements` elements."""

    name: str
    dtype: str
    elements: int

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.elements * SIZES[self.dtype]


_TABLE: WeakValueDictionary[tuple[Any, ...], Any] = WeakValueDictionary()


class _Interned(type):
    """Calls of a class with equal arguments give the same object."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__call__(*args, **kwargs)
        key = (cls, *(_key(getattr(made, field.name)) for field in fields(made)))
        found = _TABLE.setdefault(key, made)
        # What is known of the children is known of this at once: no later question goes deeper than one step.
        _ = found.axes, found.height
        return found


def _key(value: Any) -> Any:
    return (type(value), repr(value)) if isinstance(value, bool | int | float) else value


@dataclass(frozen=True, eq=False)
class Expr(metaclass=_Interned):
    """One scalar, of a computed type. Compare with `is`."""

    children: ClassVar[tuple[Expr, ...]] = ()

    @property
    def dtype(self) -> str:
        """One of float32, float64, int64, int32, bool."""
        raise NotImplementedError

    @property
    def axes(self) -> frozenset[Axis]:
        """The axes this depends on that no fold within it binds."""
        known = self.__dict__.get("_axes")
        if known is None:
            known = self._find_axes()
            self.__dict__["_axes"] = known
        return known

    @property
    def height(self) -> int:
        """The longest way down from here, in operations."""
        known: int | None = self.__dict__.get("_height")
        if known is None:
            known = 1 + max((child.height for child in self.children), default=0)
            self.__dict__["_height"] = known
        return known

    def _find_axes(self) -> frozenset[Axis]:
        return frozenset().union(*(child.axes for child in self.children))


@dataclass(frozen=True, eq=False)
class Const(Expr):
    """A number."""

    value: float | int | bool
    of: str = "float32"

    @property
    def dtype(self) -> str:
        return self.of


@dataclass(frozen=True, eq=False)
class Name(Expr):
    """A stand-in for a value that is known by name: an operand of a monoid's combination, a row kept in a buffer."""

    name: str
    of: str
    depends: frozenset[Axis] = frozenset()

    @property
    def dtype(self) -> str:
        return self.of

    def _find_axes(self) -> frozenset[Axis]:
        return self.depends


@dataclass(frozen=True, eq=False)
class Position(Expr):
    """An index as a number."""

    index: Index

    @property
    def dtype(self) -> str:
        return "int64"

    def _find_axes(self) -> frozenset[Axis]:
        return self.index.axes()


@dataclass(frozen=True)
class Guard:
    """A load is made only where 0 <= index < extent."""

    index: Index
    extent: int


@dataclass(frozen=True, eq=False)
class Load(Expr):
    """The element of a buffer at a position in elements; where a guard does not hold, `fill`, or 0 if that is None."""

    buffer: Buffer
    offset: Index
    guards: tuple[Guard, ...] = ()
    fill: float | int | bool | None = None

    @property
    def dtype(self) -> str:
        return COMPUTED[self.buffer.dtype]

    def _find_axes(self) -> frozenset[Axis]:
        return self.offset.axes().union(*(guard.index.axes() for guard in self.guards))


@dataclass(frozen=True, eq=False)
class Op(Expr):
    """A scalar operation of `apps.agents.builtin.scalars`, with operands already of the type it computes in."""

    name: str
    args: tuple[Expr, ...]
    to: str

    @property
    def dtype(self) -> str:
        return self.to

    @property
    def children(self) -> tuple[Expr, ...]:  # type: ignore[override]
        return self.args


@dataclass(frozen=True, eq=False)
class Fold(Expr):
    """One part of a tuple combined over all points of `axes` by a monoid. `parts` are what a single point gives."""

    monoid: str
    bound: tuple[Axis, ...]
    parts: tuple[Expr, ...]
    part: int = 0

    @property
    def dtype(self) -> str:
        return self.parts[self.part].dtype

    @property
    def children(self) -> tuple[Expr, ...]:  # type: ignore[override]
        return self.parts

    def _find_axes(self) -> frozenset[Axis]:
        return super()._find_axes() - frozenset(self.bound)

    @property
    def whole(self) -> Fold:
        """The same fold's first part: what stands for the whole tuple."""
        return self if self.part == 0 else Fold(self.monoid, self.bound, self.parts, 0)


@dataclass(frozen=True, eq=False)
class Scan(Expr):
    """What a monoid of one part makes of `part` at the points 0 to `at` of the axis `bound`, that point included."""

    monoid: str
    bound: Axis
    at: Index
    part: Expr

    @property
    def dtype(self) -> str:
        return self.part.dtype

    @property
    def children(self) -> tuple[Expr, ...]:  # type: ignore[override]
        return (self.part,)

    def _find_axes(self) -> frozenset[Axis]:
        return (self.part.axes - {self.bound}) | self.at.axes()

    @property
    def here(self) -> Expr:
        """The part at the last of its points."""
        return substitute(self.part, {self.bound: self.at})


@dataclass(frozen=True)
class Def:
    """A value of shape (extents of axes), element by element. `dtype` is the tensor's, `body` computes in its own."""

    axes: tuple[Axis, ...]
    body: Expr
    dtype: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(axis.extent for axis in self.axes)

    def at(self, indices: Iterable[Index]) -> Expr:
        """The element at these indices."""
        return substitute(self.body, dict(zip(self.axes, indices, strict=True)))


# --- making axes ------------------------------------------------------------------------------------------------

_FOLDED = 100
_FRESH = 10_000


def axes_of(shape: tuple[int, ...], *, folded: bool = False) -> tuple[Axis, ...]:
    """The axes of a value of that shape. By position, so that values of one shape share them; folded ones are others."""
    return tuple(Axis(position + folded * _FOLDED, extent) for position, extent in enumerate(shape))


def fresh(axis: Axis, taken: Iterable[Axis]) -> Axis:
    """An axis of the same extent with a number that none of `taken` has."""
    numbers = {other.number for other in taken}
    number = max([_FRESH, *numbers]) + 1
    return Axis(number, axis.extent)


# --- rewriting --------------------------------------------------------------------------------------------------


def rebuild(node: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The node with each child replaced by what `change` gives for it."""
    if isinstance(node, Op):
        return Op(node.name, tuple(change(arg) for arg in node.args), node.to)
    if isinstance(node, Fold):
        return Fold(node.monoid, node.bound, tuple(change(part) for part in node.parts), node.part)
    if isinstance(node, Scan):
        return Scan(node.monoid, node.bound, node.at, change(node.part))
    return node


def transform(node: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Apply `change` to every node, children first; each distinct node once."""
    done: dict[Expr, Expr] = {}
    for one in walk(node):
        done[one] = change(rebuild(one, done.__getitem__))
    return done[node]


def substitute(node: Expr, values: Mapping[Axis, Index]) -> Expr:
    """The node with axes replaced by indices. Bound axes that would capture one are renamed first."""
    values = {axis: index for axis, index in values.items() if index != Index.of(axis)}
    if not values:
        return node
    done: dict[Expr, Expr] = {}

    def visit(one: Expr) -> Expr:
        if one.axes.isdisjoint(values):
            return one
        if one not in done:
            done[one] = _substituted(one, values, visit)
        return done[one]

    for one in walk(node, folds=False):  # inner ones first, so that no chain is too long for Python's stack
        visit(one)
    return visit(node)


def _substituted(one: Expr, values: Mapping[Axis, Index], visit: Callable[[Expr], Expr]) -> Expr:
    if isinstance(one, Load):
        guards = tuple(Guard(guard.index.at(values), guard.extent) for guard in one.guards)
        return guarded_load(one.buffer, one.offset.at(values), guards, one.fill)
    if isinstance(one, Position):
        return Position(one.index.at(values))
    if isinstance(one, Fold):
        return _substituted_fold(one, values)
    if isinstance(one, Scan):
        # A fold over the same axis renames what would capture.
        fold = _substituted_fold(Fold(one.monoid, (one.bound,), (one.part,)), values)
        assert isinstance(fold, Fold)
        return Scan(one.monoid, fold.bound[0], one.at.at(values), fold.parts[0])
    return rebuild(one, visit)


def _substituted_fold(fold: Fold, values: Mapping[Axis, Index]) -> Expr:
    inner = {axis: index for axis, index in values.items() if axis in fold.axes}
    coming = frozenset().union(*(index.axes() for index in inner.values()))
    bound = fold.bound
    if not coming.isdisjoint(bound):
        taken = {*coming, *bound, *fold.axes}
        renamed: dict[Axis, Index] = {}
        new = []
        for axis in bound:
            other = fresh(axis, taken) if axis in coming else axis
            taken.add(other)
            new.append(other)
            if other != axis:
                renamed[axis] = Index.of(other)
        bound = tuple(new)
        inner = {**inner, **renamed}
    else:
        inner = {axis: index for axis, index in inner.items() if axis not in bound}
    return Fold(fold.monoid, bound, tuple(substitute(part, inner) for part in fold.parts), fold.part)


def guarded_load(
    buffer: Buffer, offset: Index, guards: Iterable[Guard], fill: float | int | bool | None = None
) -> Expr:
    """A load without the guards that always hold; what it gives elsewhere where one never does."""
    dtype = COMPUTED[buffer.dtype]
    kept = []
    for guard in guards:
        low, high = guard.index.range()
        if high < 0 or low >= guard.extent:
            return Const(zero(dtype) if fill is None else fill, dtype)
        if low < 0 or high >= guard.extent:
            kept.append(guard)
    return Load(buffer, offset, tuple(dict.fromkeys(kept)), fill if kept else None)


def zero(dtype: str) -> float | int | bool:
    """Nought of a type."""
    return 0.0 if dtype in FLOATS else dtype != "bool" and 0


# --- looking ----------------------------------------------------------------------------------------------------


def walk(*roots: Expr, folds: bool = True) -> Iterator[Expr]:
    """Every distinct node below the roots, children first; what folds and scans combine too, unless `folds` is false."""
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            if folds or not isinstance(node, Fold | Scan):
                stack.extend((child, False) for child in reversed(node.children))


def folds_read(*roots: Expr) -> tuple[Fold, ...]:
    """The folds (as wholes) that the roots read themselves, not those within other folds."""
    found: dict[Fold, None] = {}
    seen: set[Expr] = set()
    stack = list(reversed(roots))
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Fold):
            found[node.whole] = None
        elif not isinstance(node, Scan):
            stack.extend(reversed(node.children))
    return tuple(found)


def scans_read(*roots: Expr) -> tuple[Scan, ...]:
    """The scans that the roots read themselves, not those within folds or other scans."""
    return tuple(node for node in walk(*roots, folds=False) if isinstance(node, Scan))


def is_number(node: Expr, value: float) -> bool:
    """Whether the node is that constant."""
    return isinstance(node, Const) and not isinstance(node.value, bool) and node.value == value


def finite(value: float | int | bool) -> bool:
    """Whether a constant is an ordinary number."""
    return not isinstance(value, float) or math.isfinite(value)
