"""Vector loops in C++: over all of an axis, a block or a tile of it, with the last few; and what they store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from apps.agents.builtin.cpp.accumulation import LONGEST_CHAIN, Accumulation
from apps.agents.builtin.cpp.expressions import Expressions, bare
from apps.agents.builtin.cpp.scope import Scope
from apps.agents.builtin.form import FLOATS, SIZES, Expr, Load, walk
from apps.agents.builtin.nest import Accumulate, Piece, Store, Vec
from apps.agents.builtin.walking import widens

# Partly unrolled by name rather than by flag, so that accumulators stay in registers.
MOST_UNROLLED = 16


@dataclass(frozen=True)
class Dealt:
    """The piece of an axis that a thread has been dealt, and the names of its first and last place."""

    piece: Piece
    first: str
    last: str


class VectorLoops:
    """Writes innermost loops. `dealt` is the piece that surrounds them, if any."""

    def __init__(self, expressions: Expressions, folds: Accumulation) -> None:
        self.expressions = expressions
        self.folds = folds
        self.dealt: Dealt | None = None

    def tiles(self, vector: Vec) -> int:
        """How many vectors the surrounding Par's piece has, 0 where this loop is not over such a piece."""
        if self.dealt is None or self.dealt.piece.place != vector.axis:
            return 0
        return self.dealt.piece.size // vector.lanes

    def write(self, loop: Vec, scope: Scope) -> None:
        """The loop with all it stores and accumulates."""
        if self.tiles(loop):
            self._tile(loop, scope)
        elif loop.lanes == 1:
            self._plain(loop, scope)
        else:
            self._lanes(loop, scope)

    def _range(self, loop: Vec) -> tuple[str, str]:
        if self.dealt is not None and self.dealt.piece.axis == loop.axis:
            return self.dealt.first, self.dealt.last
        return "0", str(loop.axis.extent)

    def _body(self, loop: Vec, scope: Scope, fresh_lanes: str | None = None, at: str = "0", tail: bool = False) -> None:
        for buffer, place in loop.ahead if not tail else ():
            where = f"__builtin_prefetch({buffer.name} + {scope.index(place)});"
            # Once for each line of 64 bytes.
            lines = 64 // (loop.lanes * SIZES[buffer.dtype])
            counted = at == "u" and lines > 1 and loop.unroll % lines == 0
            scope.add(f"if (u % {lines} == 0) {where}" if counted else where)
        for statement in loop.body:
            if isinstance(statement, Store):
                self.store(statement, scope, loop.lanes, streaming=statement.streaming and not tail)
            else:
                self.folds.accumulate(statement, scope, fresh_lanes, at)

    def _inner(self, loop: Vec, scope: Scope, name: str) -> Scope:
        inner = Scope(scope)
        inner.variables[loop.axis] = name
        inner.vector = (loop.axis, loop.lanes)
        return inner

    def _tile(self, loop: Vec, scope: Scope) -> None:
        name = self.expressions.loop_name(scope)
        inner = self._inner(loop, scope, name)
        inner.add(f"const int64_t {name} = {'t' if loop.lanes == 1 else f't * {loop.lanes}'};")
        self._body(loop, inner)
        tiles = self.tiles(loop)
        if loop.lanes == 1 and self._no_calls(loop):
            scope.add("#pragma omp simd")
        elif loop.lanes > 1 and tiles <= MOST_UNROLLED:
            scope.add(f"#pragma GCC unroll {tiles}")
        inner.close(f"for (int t = 0; t < {tiles}; ++t)")

    def _plain(self, loop: Vec, scope: Scope) -> None:
        name = self.expressions.loop_name(scope)
        first, last = self._range(loop)
        inner = self._inner(loop, scope, name)
        self._body(loop, inner)
        pragma = self._simd(loop)
        if pragma:
            scope.add(pragma)
        inner.close(f"for (int64_t {name} = {first}; {name} < {last}; ++{name})")

    def _simd(self, loop: Vec) -> str:
        """What the compiler must be told to vectorise: that sums may be reordered. Of other folds it would lose NaN."""
        sums = []
        for statement in loop.body:
            if isinstance(statement, Accumulate):
                if statement.fold.monoid not in ("sum", "product"):
                    return ""
                operator = "+" if statement.fold.monoid == "sum" else "*"
                sums.append(f" reduction({operator} : {self.folds.made[statement.fold].names[0]})")
        return "#pragma omp simd" + "".join(sums)

    def _no_calls(self, loop: Vec) -> bool:
        return not any(isinstance(s, Accumulate) and len(s.fold.parts) > 1 for s in loop.body)

    def _lanes(self, loop: Vec, scope: Scope) -> None:
        name = self.expressions.loop_name(scope)
        first, last = self._range(loop)
        if self.dealt is not None and self.dealt.piece.axis == loop.axis:
            self._lanes_of_block(loop, scope, name, first, last)
            return
        extent, lanes = loop.axis.extent, loop.lanes
        done = 0
        if loop.unroll > 1:
            done = extent // (lanes * loop.unroll) * lanes * loop.unroll
            for around, start, end in self._chains(loop, scope, "0", str(done), done, lanes * loop.unroll):
                self._unrolled(loop, around, name, start, end)
        whole = extent // lanes * lanes
        if whole > done:
            for around, start, end in self._chains(loop, scope, str(done), str(whole), whole - done, lanes):
                inner = self._inner(loop, around, name)
                self._body(loop, inner)
                inner.close(f"for (int64_t {name} = {start}; {name} < {end}; {name} += {lanes})")
        if extent > whole and _overwrites(loop):
            self._one_by_one(loop, scope, name, str(whole), str(extent))
        elif extent > whole:
            self._tail(loop, scope, name, extent - whole)

    def _unrolled(self, loop: Vec, scope: Scope, name: str, first: str, last: str) -> None:
        outer = Scope(scope)
        start = self.expressions.fresh("start")
        inner = self._inner(loop, outer, name)
        inner.add(f"const int64_t {name} = {start} + u * {loop.lanes};")
        self._body(loop, inner, at="u")
        outer.add(f"#pragma GCC unroll {loop.unroll}")
        inner.close(f"for (int u = 0; u < {loop.unroll}; ++u)")
        outer.close(f"for (int64_t {start} = {first}; {start} < {last}; {start} += {loop.lanes * loop.unroll})")

    def _chains(
        self, loop: Vec, scope: Scope, first: str, last: str, most: int, step: int
    ) -> Iterator[tuple[Scope, str, str]]:
        """From where to where loops go whose accumulators take no more than so many terms: once from `first` to `last`, or
        within a loop over pieces. `most` is how far they are apart at most; a turn goes on by `step`.
        """
        piece = LONGEST_CHAIN * step
        sums = [s.fold for s in loop.body if isinstance(s, Accumulate) and _drifts(s, loop)]
        if not sums or most <= piece:
            yield scope, first, last
            return
        outer = Scope(scope)
        start, end = self.expressions.fresh("piece"), self.expressions.fresh("piece_end")
        outer.add(f"const int64_t {end} = {start} + {piece} < {last} ? {start} + {piece} : {last};")
        with self.folds.emptied(sums, loop, outer):
            yield outer, start, end
        outer.close(f"for (int64_t {start} = {first}; {start} < {last}; {start} += {piece})")

    def _one_by_one(self, loop: Vec, scope: Scope, name: str, first: str, last: str) -> None:
        """The last few where what they read may not be read again."""
        single = replace(loop, lanes=1, unroll=1)
        inner = self._inner(single, scope, name)
        self._body(single, inner)
        inner.close(f"for (int64_t {name} = {first}; {name} < {last}; ++{name})")

    def _tail(self, loop: Vec, scope: Scope, name: str, left: int) -> None:
        """The last few: a vector that reaches back over elements already done, which folds leave out."""
        inner = self._inner(loop, scope, name)
        inner.add(f"const int64_t {name} = {loop.axis.extent - loop.lanes};")
        fresh = None
        if any(isinstance(s, Accumulate) for s in loop.body):
            fresh = self.expressions.fresh("fresh")
            self.expressions.need("counting")
            self.expressions.need("select")
            vector = self.expressions.vector_type("int32", loop.lanes)
            inner.add(f"const auto {fresh} = counting<{vector}>(0, 1) >= {loop.lanes - left};")
        self._body(loop, inner, fresh, tail=True)
        inner.close("")

    def _lanes_of_block(self, loop: Vec, scope: Scope, name: str, first: str, last: str) -> None:
        assert self.dealt is not None
        for around, start, end in self._chains(loop, scope, first, last, self.dealt.piece.size, loop.lanes):
            inner = self._inner(loop, around, name)
            self._body(loop, inner)
            inner.close(f"for (int64_t {name} = {start}; {name} + {loop.lanes} <= {end}; {name} += {loop.lanes})")
        left = loop.axis.extent % self.dealt.piece.size % loop.lanes
        if left and _overwrites(loop):
            self._one_by_one(loop, scope, name, f"{last} - ({last} - {first}) % {loop.lanes}", last)
        elif left:
            tail = self._inner(loop, scope, name)
            tail.add(f"const int64_t {name} = {loop.axis.extent - loop.lanes};")
            self._body(loop, tail, tail=True)
            tail.close(f"if ({last} == {loop.axis.extent})")

    # --- stores

    def store(self, statement: Store, scope: Scope, lanes: int, *, streaming: bool) -> None:
        """One store, of a number or of a vector."""
        buffer, value = statement.buffer, statement.value
        where = scope.index(statement.offset)
        at = buffer.name if where == "0" else f"{buffer.name} + {where}"
        special = buffer.dtype in ("bfloat16", "float16")
        if special:
            self.expressions.need(buffer.dtype)
        if lanes == 1:
            text = self.expressions.write(value, scope)
            if special:
                scope.add(f"store({at}, {text});")
            elif buffer.dtype == "bool":
                scope.add(f"{buffer.name}[{where}] = {text} ? 1 : 0;")
            else:
                scope.add(f"{buffer.name}[{where}] = {bare(text)};")
            return
        if widens(statement) and not streaming:
            value = value.children[0]
        text = self.expressions.splatted(value, scope, lanes)
        axis = scope.vector[0] if scope.vector else None
        step = statement.offset.coefficient(axis) if axis is not None else None
        if step == -1 and not special and buffer.dtype != "bool":
            self.expressions.need("store_backwards")
            scope.add(f"store_backwards({at}, {bare(text)});")
        elif step != 1:
            self._scatter(statement, scope, text, lanes)
        elif buffer.dtype == "bool":
            self.expressions.need("store_truth")
            scope.add(f"store_truth<{lanes}>({at}, {text});")
        else:
            self.expressions.need("stream" if streaming else "store")
            scope.add(f"{'stream' if streaming else 'store'}({at}, {bare(text)});")

    def _scatter(self, statement: Store, scope: Scope, text: str, lanes: int) -> None:
        assert scope.vector is not None
        value = self.expressions.fresh("scattered")
        scope.add(f"const auto {value} = {text};")
        where = scope.index(statement.offset, "l", scope.vector[0])
        element = f"{value}[l]"
        if statement.buffer.dtype == "bool":
            element = f"{element} ? 1 : 0"
        target = f"{statement.buffer.name}[{where}] = {element}"
        if statement.buffer.dtype in ("bfloat16", "float16"):
            target = f"store({statement.buffer.name} + {where}, float({element}))"
        scope.add(f"for (int l = 0; l < {lanes}; ++l) {target};")


def _overwrites(loop: Vec) -> bool:
    """Whether it stores where it loads from, so that no element may be done twice."""
    values = [part for statement in loop.body for part in _parts(statement)]
    read = {node.buffer for node in walk(*values, folds=False) if isinstance(node, Load)}
    return any(isinstance(s, Store) and s.buffer in read for s in loop.body)


def _parts(statement: Store | Accumulate) -> tuple[Expr, ...]:
    return (statement.value,) if isinstance(statement, Store) else statement.fold.parts


def _drifts(statement: Accumulate, loop: Vec) -> bool:
    """Whether rounding errors of a fold along this loop add up over a long chain."""
    return statement.fold.monoid == "sum" and statement.fold.dtype in FLOATS and loop.axis in statement.fold.bound
