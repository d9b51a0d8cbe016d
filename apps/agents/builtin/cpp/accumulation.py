"""Folds in C++: accumulators, what is combined into them, and how many of them become one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from apps.agents.builtin.cpp.expressions import Expressions, bare
from apps.agents.builtin.cpp.scalar_text import TYPES
from apps.agents.builtin.cpp.scope import Scope
from apps.agents.builtin.form import Expr, Fold, Name, Op, Position
from apps.agents.builtin.index import Axis
from apps.agents.builtin.monoids import MONOIDS
from apps.agents.builtin.nest import Accumulate, Vec

# So many terms one accumulator takes before it is emptied into another: rounding errors of a long chain of additions grow
# with its length, those of a chain of chains with the square root of it.
LONGEST_CHAIN = 64

# The axis of a loop over accumulators or lanes, which no problem has.
_LANE = Axis(99_999, 2)


@dataclass
class Accumulators:
    """Where a fold is being accumulated: one name for each part, with `[u]` or `[t]` behind it where there are several."""

    names: list[str]
    lanes: int
    count: int
    tiled: bool


class Accumulation:
    """Declares, feeds and finishes accumulators, and remembers them by fold."""

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.made: dict[Fold, Accumulators] = {}

    def declare(self, fold: Fold, vector: Vec | None, tiles: int, scope: Scope) -> None:
        """Accumulators at their identity. `tiles`: so many vectors side by side, where the loop is over a tile."""
        dtypes = tuple(part.dtype for part in fold.parts)
        tiled = vector is not None and vector.axis not in fold.bound and tiles > 0
        lanes = vector.lanes if vector is not None else 1
        count = tiles if tiled else vector.unroll if vector else 1
        stem = {"max_sum": "top", "argmax": "best", "argmin": "best"}.get(fold.monoid, fold.monoid)
        names = []
        for i, (dtype, start) in enumerate(zip(dtypes, MONOIDS[fold.monoid].identity(dtypes), strict=True)):
            name = self.expressions.fresh(stem if i == 0 else {"max_sum": "sum"}.get(fold.monoid, "at"))
            kind = self.expressions.vector_type(dtype, lanes)
            value = self.expressions.splatted(start, scope, lanes)
            if count == 1 and not tiled:
                scope.add(f"{kind} {name} = {value};")
            else:
                scope.add(f"{kind} {name}[{count}];")
                scope.add(f"for (auto& one : {name}) one = {value};")
            names.append(name)
        self.made[fold] = Accumulators(names, lanes, count, tiled)

    @contextmanager
    def emptied(self, folds: Sequence[Fold], vector: Vec, scope: Scope) -> Iterator[None]:
        """What is accumulated within goes to accumulators of its own, which are then emptied into those declared."""
        declared = {fold: self.made[fold] for fold in folds}
        for fold in folds:
            self.declare(fold, vector, 0, scope)
        yield
        for fold, whole in declared.items():
            piece, self.made[fold] = self.made[fold], whole
            at, loop = ("[u]", f"for (int u = 0; u < {whole.count}; ++u)") if whole.count > 1 else ("", "")
            block = Scope(scope)
            block.vector = (_LANE, whole.lanes)
            into, more = ([f"{name}{at}" for name in names] for names in (whole.names, piece.names))
            self._combine_into(fold, into, more, block, _LANE)
            block.close(loop)

    def finish(self, fold: Fold, scope: Scope) -> None:
        """Combines accumulators and lanes, and names each part's result."""
        made = self.made[fold]
        results = list(made.names)
        if made.tiled:
            results = [f"{name}[t]" for name in made.names]
        elif made.lanes > 1 or made.count > 1:
            results = self._across(fold, made, scope)
        for i, result in enumerate(results):
            scope.names[Fold(fold.monoid, fold.bound, fold.parts, i)] = result

    def _across(self, fold: Fold, made: Accumulators, scope: Scope) -> list[str]:
        dtypes = tuple(part.dtype for part in fold.parts)
        if made.count > 1:
            block = Scope(scope)
            block.vector = (_LANE, made.lanes)
            self._combine_into(fold, [f"{n}[0]" for n in made.names], [f"{n}[u]" for n in made.names], block, _LANE)
            block.close(f"for (int u = 1; u < {made.count}; ++u)")
        wide = [f"{name}[0]" if made.count > 1 else name for name in made.names]
        if made.lanes == 1:
            return wide
        results = [self.expressions.fresh(f"{name}_all") for name in made.names]
        if len(dtypes) == 1:
            combined = self.combination(fold, ["a"], ["b"], made.lanes)
            self.expressions.need("fold_lanes")
            whole = f"fold_lanes({wide[0]}, [](auto a, auto b) {{ return {combined}; }})"
            scope.add(f"const {TYPES[dtypes[0]]} {results[0]} = {whole};")
            return results
        for dtype, result, one in zip(dtypes, results, wide, strict=True):
            scope.add(f"{TYPES[dtype]} {result} = {one}[0];")
        block = Scope(scope)
        block.vector = None
        self._combine_into(fold, results, [f"{one}[l]" for one in wide], block, _LANE)
        block.close(f"for (int l = 1; l < {made.lanes}; ++l)")
        return results

    def combination(self, fold: Fold, left: list[str], right: list[str], lanes: int) -> str:
        """One part's combination over two names that are vectors of any size, without lines before it."""
        block = Scope()
        block.vector = (_LANE, lanes)
        a, b = self._operands(fold, left, right, block, _LANE)
        (new,) = MONOIDS[fold.monoid].combine(a, b)
        return self.expressions.write(new, block)

    def _combine_into(self, fold: Fold, into: list[str], more: list[str], scope: Scope, axis: Axis) -> None:
        a, b = self._operands(fold, into, more, scope, axis)
        self._assign(into, MONOIDS[fold.monoid].combine(a, b), scope)

    def _operands(
        self, fold: Fold, left: list[str], right: list[str], scope: Scope, axis: Axis
    ) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
        scope.variables[axis] = "0"
        dtypes = [part.dtype for part in fold.parts]
        sides = []
        for names in (left, right):
            nodes = tuple(Name(n, d, frozenset({axis})) for n, d in zip(names, dtypes, strict=True))
            scope.names.update({node: node.name for node in nodes})
            sides.append(nodes)
        return sides[0], sides[1]

    def _assign(self, into: list[str], values: tuple[Expr, ...], scope: Scope) -> None:
        self.expressions.expect(values)
        texts = [self.expressions.write(value, scope) for value in values]
        if len(into) > 1:
            named = []
            for text, value in zip(texts, values, strict=True):
                name = self.expressions.fresh("next")
                kind = self.expressions.vector_type(value.dtype, self.expressions.lanes(value, scope))
                scope.add(f"const {kind} {name} = {text};")
                named.append(name)
            texts = named
        for name, text in zip(into, texts, strict=True):
            scope.add(f"{name} = {bare(text)};")

    def accumulate(self, statement: Accumulate, scope: Scope, fresh_lanes: str | None, at: str = "0") -> None:
        """Combines what one point or vector gives. `fresh_lanes` names the lanes that count, where not all do."""
        fold = statement.fold
        made = self.made[fold]
        innermost = self._innermost(scope)
        index = "[t]" if made.tiled else f"[{at}]" if made.count > 1 else ""
        names = [f"{name}{index}" for name in made.names]
        dtypes = tuple(part.dtype for part in fold.parts)
        accumulated = tuple(Name(n, d, frozenset({innermost})) for n, d in zip(names, dtypes, strict=True))
        scope.names.update({node: node.name for node in accumulated})
        parts = fold.parts
        if fresh_lanes is not None:
            test = Name(fresh_lanes, "bool", frozenset({innermost}))
            scope.names[test] = fresh_lanes
            identity = MONOIDS[fold.monoid].identity(dtypes)
            parts = tuple(Op("select", (test, p, i), p.dtype) for p, i in zip(parts, identity, strict=True))
        monoid = MONOIDS[fold.monoid]
        ordered = monoid.follow is not None and self._in_order(fold, scope)
        combine = monoid.follow if ordered and monoid.follow else monoid.combine
        self._assign(names, combine(accumulated, parts), scope)

    def _in_order(self, fold: Fold, scope: Scope) -> bool:
        """Whether the loops reach the points of a fold in ascending order of the index that is its second part."""
        where = fold.parts[1]
        position = where.children[0] if isinstance(where, Op) and where.name == "cast" else where
        if not isinstance(position, Position) or fold.bound[0] not in position.axes:
            return False
        covered = 0
        for axis in sorted(fold.bound, key=lambda axis: -scope.binder(axis).depth):
            step = position.index.coefficient(axis)
            if step is None or step <= covered:
                return False
            covered += step * (axis.extent - 1)
        return True

    def _innermost(self, scope: Scope) -> Axis:
        one: Scope | None = scope
        while one is not None:
            for axis in one.variables:
                if axis.number >= 0:
                    return axis
            one = one.parent
        raise KeyError("nothing is bound here")
