"""Index arithmetic: sums of axes with whole coefficients, quotients and remainders, simplified by their ranges.

Views, permutes, slices and reshapes are nothing but such sums, so they cost nothing. A reshape that joins axes
introduces quotients and remainders; most vanish at once because the range of what is divided is known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A loop variable that runs from 0 to `extent` - 1. Two axes are the same if number and extent are."""

    number: int
    extent: int


@dataclass(frozen=True)
class Quotient:
    """`of` divided by the positive constant `by`, rounded down."""

    of: Index
    by: int


@dataclass(frozen=True)
class Remainder:
    """What is left of `of` by that division; never negative."""

    of: Index
    by: int


Atom = Axis | Quotient | Remainder


def _order(atom: Atom) -> tuple[int, int, str]:
    if isinstance(atom, Axis):
        return (0, atom.number, "")
    return (1, atom.by, repr(atom))


@dataclass(frozen=True)
class Index:
    """`constant` plus each atom times its coefficient. Make one by `Index.of`, `+`, `*`, `quotient`, `remainder`."""

    terms: tuple[tuple[Atom, int], ...] = ()
    constant: int = 0

    @staticmethod
    def of(what: Axis | int) -> Index:
        """An axis or a number as an index; an axis of extent 1 is 0."""
        if isinstance(what, int):
            return Index((), what)
        return Index(((what, 1),)) if what.extent > 1 else Index()

    @staticmethod
    def _sum(terms: Mapping[Atom, int], constant: int) -> Index:
        kept = sorted(((atom, by) for atom, by in terms.items() if by), key=lambda term: _order(term[0]))
        for atom, step in kept:
            # n / by * by + n % by is n.
            if isinstance(atom, Quotient) and terms.get(Remainder(atom.of, atom.by), 0) * atom.by == step:
                rest = {one: by for one, by in kept if one not in (atom, Remainder(atom.of, atom.by))}
                return Index._sum(rest, constant) + atom.of * (step // atom.by)
        return Index(tuple(kept), constant)

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.constant + other)
        terms = dict(self.terms)
        for atom, by in other.terms:
            terms[atom] = terms.get(atom, 0) + by
        return Index._sum(terms, self.constant + other.constant)

    def __mul__(self, by: int) -> Index:
        if not by:
            return Index()
        return Index(tuple((atom, coefficient * by) for atom, coefficient in self.terms), self.constant * by)

    def __sub__(self, other: Index | int) -> Index:
        return self + other * -1

    def range(self) -> tuple[int, int]:
        """The smallest and the largest value (bounds that may be wide where atoms depend on each other)."""
        low = high = self.constant
        for atom, by in self.terms:
            a, b = _atom_range(atom)
            low, high = low + min(a * by, b * by), high + max(a * by, b * by)
        return low, high

    def quotient(self, by: int) -> Index:
        """This divided by `by`, rounded down."""
        if by == 1:
            return self
        whole, rest = self._divided(by)
        low, high = rest.range()
        if low // by == high // by:
            return whole + low // by
        rest, by = _without_common_factor(rest, by)
        if len(rest.terms) == 1 and not rest.constant and rest.terms[0][1] == 1:
            atom = rest.terms[0][0]
            if isinstance(atom, Quotient):
                return whole + atom.of.quotient(atom.by * by)
        return whole + Index(((Quotient(rest, by), 1),))

    def remainder(self, by: int) -> Index:
        """What is left of this by division through `by`."""
        if by == 1:
            return Index()
        _, rest = self._divided(by)
        low, high = rest.range()
        if low // by == high // by:
            return rest - low // by * by
        reduced, smaller = _without_common_factor(rest, by)
        factor = by // smaller
        return Index(((Remainder(reduced, smaller), factor),), rest.constant % factor)

    def _divided(self, by: int) -> tuple[Index, Index]:
        whole = Index(tuple((atom, c // by) for atom, c in self.terms if c % by == 0), self.constant // by)
        rest = Index(tuple((atom, c) for atom, c in self.terms if c % by), self.constant % by)
        return whole, rest

    def axes(self) -> frozenset[Axis]:
        """All axes this depends on."""
        found: set[Axis] = set()
        for atom, _ in self.terms:
            if isinstance(atom, Axis):
                found.add(atom)
            else:
                found |= atom.of.axes()
        return frozenset(found)

    def coefficient(self, axis: Axis) -> int | None:
        """How far one step of `axis` moves this; None where a quotient or remainder depends on it."""
        step = 0
        for atom, by in self.terms:
            if atom == axis:
                step = by
            elif not isinstance(atom, Axis) and axis in atom.of.axes():
                return None
        return step

    def divisions(self) -> Iterator[Quotient | Remainder]:
        """All quotients and remainders, inner ones first."""
        for atom, _ in self.terms:
            if not isinstance(atom, Axis):
                yield from atom.of.divisions()
                yield atom

    def at(self, values: Mapping[Axis, Index]) -> Index:
        """This with axes replaced by indices."""
        if not any(axis in values for axis in self.axes()):
            return self
        total = Index((), self.constant)
        for atom, by in self.terms:
            if isinstance(atom, Axis):
                total = total + values.get(atom, Index.of(atom)) * by
            elif isinstance(atom, Quotient):
                total = total + atom.of.at(values).quotient(atom.by) * by
            else:
                total = total + atom.of.at(values).remainder(atom.by) * by
        return total

    def value(self, point: Mapping[Axis, int]) -> int:
        """The number this is where axes have these values."""
        total = self.constant
        for atom, by in self.terms:
            if isinstance(atom, Axis):
                total += point[atom] * by
            elif isinstance(atom, Quotient):
                total += atom.of.value(point) // atom.by * by
            else:
                total += atom.of.value(point) % atom.by * by
        return total


def _atom_range(atom: Atom) -> tuple[int, int]:
    if isinstance(atom, Axis):
        return 0, max(0, atom.extent - 1)
    if isinstance(atom, Remainder):
        return 0, atom.by - 1
    low, high = atom.of.range()
    return low // atom.by, high // atom.by


def _without_common_factor(rest: Index, by: int) -> tuple[Index, int]:
    factor = math.gcd(by, *(coefficient for _, coefficient in rest.terms))
    if factor == 1:
        return rest, by
    terms = tuple((atom, coefficient // factor) for atom, coefficient in rest.terms)
    return Index(terms, rest.constant // factor), by // factor


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Elements between neighbours along each dimension of a contiguous tensor."""
    steps = [1] * len(shape)
    for position in range(len(shape) - 2, -1, -1):
        steps[position] = steps[position + 1] * max(1, shape[position + 1])
    return tuple(steps)


def joined(indices: tuple[Index, ...], shape: tuple[int, ...]) -> Index:
    """The position in a contiguous tensor of this shape."""
    total = Index()
    for index, step in zip(indices, strides(shape), strict=True):
        total = total + index * step
    return total


def unjoined(position: Index, shape: tuple[int, ...]) -> tuple[Index, ...]:
    """The indices of a position in a contiguous tensor of this shape."""
    found = []
    for axis, (size, step) in enumerate(zip(shape, strides(shape), strict=True)):
        index = position.quotient(step)
        found.append(index if axis == 0 else index.remainder(size))
    return tuple(found)
