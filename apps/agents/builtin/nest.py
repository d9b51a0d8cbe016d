"""Nests: the loops that compute targets, with no word on a language.

Par     points of several axes (and pieces of one more) are done by threads, in any order
For     points of one axis, in order
Vec     points of one axis, several at once: all of it, or the piece that a surrounding Par deals out
Folds   accumulators are made, the body accumulates into them, and they are finished
Running points of one axis in order, with what scans have come to so far
Store, Accumulate   what happens at a point
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from apps.agents.builtin.form import Buffer, Expr, Fold, Scan
from apps.agents.builtin.index import Axis, Index


@dataclass(frozen=True)
class Store:
    """buffer[offset] = value. `streaming`: past the caches, where the printer can. `kept`: into memory of the thread's own."""

    buffer: Buffer
    offset: Index
    value: Expr
    streaming: bool = False
    kept: bool = False


@dataclass(frozen=True)
class Accumulate:
    """The fold's parts at this point are combined into its accumulators."""

    fold: Fold


@dataclass(frozen=True)
class Vec:
    """`lanes` points at a time (1: as the compiler sees fit); `unroll` of these at once, each with its accumulators.

    `ahead` are places that a later row will read, asked for in passing.
    """

    axis: Axis
    lanes: int
    unroll: int
    body: tuple[Store | Accumulate, ...]
    ahead: tuple[tuple[Buffer, Index], ...] = ()


@dataclass(frozen=True)
class For:
    """Points of one axis in order."""

    axis: Axis
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Folds:
    """Folds that are accumulated together by the body, which stores what later passes need in `keeps`."""

    folds: tuple[Fold, ...]
    body: tuple[Statement, ...]
    keeps: tuple[Buffer, ...] = ()


@dataclass(frozen=True)
class Running:
    """Points of one axis in order, each scan's value so far carried from one to the next.

    The loop within is over that axis itself, or over a tile of another one: then each lane carries its own value.
    """

    axis: Axis
    scans: tuple[Scan, ...]
    body: Vec


@dataclass(frozen=True)
class Piece:
    """Pieces of an axis that a Par deals out.

    A tile has a `start` and a `place` within it, whose sum is the place along the axis; what is within the Par is spelled
    with these. All tiles are of one size: the last one reaches back. Of one tile alone the start is 0, and not spelled.
    """

    axis: Axis
    size: int
    start: Axis | None = None
    place: Axis | None = None

    @property
    def exact(self) -> bool:
        """Whether these are tiles."""
        return self.place is not None

    @property
    def count(self) -> int:
        """How many pieces there are."""
        return -(-self.axis.extent // self.size)


@dataclass(frozen=True)
class Par:
    """Points of axes and pieces of one more, over threads where `threads`."""

    axes: tuple[Axis, ...]
    piece: Piece | None
    body: tuple[Statement, ...]
    threads: bool = True

    @property
    def count(self) -> int:
        """How many points and pieces there are."""
        total = self.piece.count if self.piece else 1
        for axis in self.axes:
            total *= axis.extent
        return total


Statement = Par | For | Vec | Folds | Running | Store | Accumulate


@dataclass(frozen=True)
class Kernel:
    """Statements in order, and the buffers that they use: those they read, write, and keep between statements.

    `rounds` are statements that come before calls of the library, one round before the other; empty ones too. `library_flops`
    are the operations that these calls make, which take the same time whatever the loops do. `inplace` says which outputs
    take the memory of which product.
    """

    statements: tuple[Statement, ...]
    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    scratch: tuple[Buffer, ...]
    rounds: tuple[tuple[Statement, ...], ...] = ()
    library_flops: float = 0.0
    inplace: tuple[tuple[str, str], ...] = ()

    @property
    def everything(self) -> tuple[Statement, ...]:
        """All statements of all rounds."""
        return (*(one for statements in self.rounds for one in statements), *self.statements)


def statements_in(*roots: Statement) -> Iterator[Statement]:
    """Every statement, outer ones first."""
    for root in roots:
        yield root
        if isinstance(root, Par | For | Vec | Folds):
            yield from statements_in(*root.body)
        elif isinstance(root, Running):
            yield from statements_in(root.body)


def expressions_in(*roots: Statement) -> Iterator[Expr]:
    """What stores store and folds accumulate."""
    for statement in statements_in(*roots):
        if isinstance(statement, Store):
            yield statement.value
        elif isinstance(statement, Accumulate):
            yield from statement.fold.parts
        elif isinstance(statement, Running):
            yield from (scan.here for scan in statement.scans)
