"""A kernel as one C++ function with C linkage: pointers in, nothing out."""

from __future__ import annotations

from dataclasses import dataclass

from apps.agents.builtin.cpp.expressions import Expressions
from apps.agents.builtin.cpp.functions import text_of
from apps.agents.builtin.cpp.scalar_text import MEMORY, TYPES
from apps.agents.builtin.cpp.scope import Scope
from apps.agents.builtin.form import Buffer, Expr, Fold, Name, Op, Position
from apps.agents.builtin.index import Axis
from apps.agents.builtin.monoids import MONOIDS
from apps.agents.builtin.nest import (
    Accumulate,
    Folds,
    For,
    Kernel,
    Par,
    Piece,
    Statement,
    Store,
    Vec,
    expressions_in,
    statements_in,
)
from apps.agents.builtin.placing import widens

INCLUDES = ("cmath", "cstdint", "cstring", "type_traits", "algorithm", "utility")
_LOOP_NAMES = "ijkmnop"
# Partly unrolled by name rather than by flag, so that accumulators stay in registers.
MOST_UNROLLED = 16


def print_kernel(kernel: Kernel, function: str, *, polynomials: bool) -> str:
    """The whole C++ source."""
    return _Printer(kernel, polynomials).source(function)


@dataclass
class _Accumulators:
    """Where a fold is being accumulated: one text for each part, with `[u]` or `[t]` where there are several."""

    names: list[str]
    lanes: int
    count: int
    tiled: bool


class _Printer:
    def __init__(self, kernel: Kernel, polynomials: bool) -> None:
        self.kernel = kernel
        roots = list(expressions_in(*kernel.statements))
        self.expressions = Expressions(roots, polynomials=polynomials)
        kept = [s.value for s in statements_in(*kernel.statements) if isinstance(s, Store) and s.kept]
        self.expressions.uses.update(kept)
        for buffer in (*kernel.reads, *kernel.writes, *kernel.scratch):
            self.expressions.fresh(buffer.name)
        self.piece: tuple[Piece, str, str] | None = None
        self.piece_number = "0"
        self.accumulators: dict[Fold, _Accumulators] = {}

    def source(self, function: str) -> str:
        """Includes, pieces, types, the function."""
        outer = Scope()
        for statement in self.kernel.statements:
            self._statement(statement, outer)
        parameters = [self._parameter(buffer, True) for buffer in self.kernel.reads]
        parameters += [self._parameter(buffer, False) for buffer in (*self.kernel.writes, *self.kernel.scratch)]
        head = f'extern "C" void {function}({", ".join(parameters)}) {{'
        body = [head, *(f"  {line}" for line in outer.lines), "}"]
        pieces = text_of(self.expressions.pieces)
        intrinsics = ["#if defined(__x86_64__)", "#include <immintrin.h>", "#endif"] if "_mm" in pieces else []
        includes = [f"#include <{name}>" for name in INCLUDES]
        aliases = [f"using {name} = {meaning};" for name, meaning in sorted(self.expressions.aliases.items())]
        inner = ["namespace {", *([pieces] if pieces else []), *aliases, "}  // namespace", ""]
        parts = [*includes, *intrinsics, "", *(inner if pieces or aliases else []), *body]
        return "\n".join(parts) + "\n"

    def _parameter(self, buffer: Buffer, constant: bool) -> str:
        if buffer.dtype in ("bfloat16", "float16"):
            self.expressions.need(buffer.dtype)
        return f"{'const ' if constant else ''}{MEMORY[buffer.dtype]}* __restrict {buffer.name}"

    # --- statements

    def _statement(self, statement: Statement, scope: Scope) -> None:
        if isinstance(statement, Par):
            self._par(statement, scope)
        elif isinstance(statement, For):
            self._for(statement, scope)
        elif isinstance(statement, Vec):
            self._vec(statement, scope)
        elif isinstance(statement, Folds):
            self._folds(statement, scope)
        elif isinstance(statement, Store):
            self._store(statement, scope, 1, streaming=False)
        else:
            self._accumulate(statement, scope, None)

    def _loop_name(self, scope: Scope) -> str:
        used: set[str] = set()
        one: Scope | None = scope
        while one is not None:
            used |= {name.split("_")[0] for name in one.variables.values()}
            one = one.parent
        return next(
            (name for name in _LOOP_NAMES if name not in used and not self.expressions.taken[name]),
            self.expressions.fresh("index"),
        )

    def _par(self, par: Par, scope: Scope) -> None:
        inner = Scope(scope)
        streaming = any(isinstance(s, Store) and s.streaming for s in statements_in(par))
        pieces = par.piece.count if par.piece else 1
        head = self._par_head(par, inner, scope, pieces)
        for statement in par.body:
            self._statement(statement, inner)
        self.piece = None
        if par.count == 1:
            inner.close("")
        elif par.threads and streaming:
            region = Scope(scope)
            region.add("#pragma omp for schedule(static) nowait")
            region.lines += [f"{head} {{", *(f"  {line}" for line in inner.lines), "}", "streamed();"]
            scope.add("#pragma omp parallel")
            region.close("")
        else:
            if par.threads:
                scope.add("#pragma omp parallel for schedule(static)")
            inner.close(head)
        if streaming and (par.count == 1 or not par.threads):
            scope.add("streamed();")

    def _par_head(self, par: Par, inner: Scope, scope: Scope, pieces: int) -> str:
        if par.count == 1:
            for axis in par.axes:
                inner.variables[axis] = "0"
        if len(par.axes) == 1 and pieces == 1:
            name = self._loop_name(scope)
            inner.variables[par.axes[0]] = name
            head = f"for (int64_t {name} = 0; {name} < {par.axes[0].extent}; ++{name})"
        else:
            point = self.expressions.fresh("point")
            head = f"for (int64_t {point} = 0; {point} < {par.count}; ++{point})"
            self._deal(par, inner, point, pieces)
        if par.piece is not None:
            self._piece(par.piece, inner)
        return head

    def _deal(self, par: Par, inner: Scope, point: str, pieces: int) -> None:
        """Axis values and the piece's number from one running number."""
        step = par.count
        for axis in par.axes:
            step //= axis.extent
            name = self._loop_name(inner)
            over = point if step == 1 else f"{point} / {step}"
            wrap = "" if axis == par.axes[0] else f" % {axis.extent}"
            inner.variables[axis] = name
            inner.add(f"const int64_t {name} = {over}{wrap};")
        if par.piece is not None:
            self.piece_number = point if not par.axes else f"{point} % {pieces}"

    def _piece(self, piece: Piece, inner: Scope) -> None:
        name = self._loop_name(inner)
        first, last = f"{name}_first", f"{name}_last"
        start = "0" if piece.count == 1 else f"{self.piece_number} * {piece.size}"
        if piece.count > 1 and " % " in start:
            start = f"({self.piece_number}) * {piece.size}"
        if piece.exact and piece.axis.extent % piece.size:
            start = f"std::min<int64_t>({start}, {piece.axis.extent - piece.size})"
        inner.add(f"const int64_t {first} = {start};")
        if not piece.exact:
            end = str(piece.axis.extent)
            if piece.count > 1:
                end = f"{first} + {piece.size}"
                if piece.axis.extent % piece.size:
                    end = f"std::min<int64_t>({end}, {piece.axis.extent})"
            inner.add(f"const int64_t {last} = {end};")
        self.piece = (piece, first, last)

    def _for(self, loop: For, scope: Scope) -> None:
        inner = Scope(scope)
        name = self._loop_name(scope)
        inner.variables[loop.axis] = name
        for statement in loop.body:
            self._statement(statement, inner)
        inner.close(f"for (int64_t {name} = 0; {name} < {loop.axis.extent}; ++{name})")

    # --- folds

    def _folds(self, folds: Folds, scope: Scope) -> None:
        vectors = {s.fold: v for v in statements_in(*folds.body) if isinstance(v, Vec) for s in v.body
                   if isinstance(s, Accumulate)}  # fmt: skip
        for buffer in folds.keeps:
            scope.add(f"alignas(64) {MEMORY[buffer.dtype]} {buffer.name}[{buffer.elements}];")
        for fold in folds.folds:
            self._declare(fold, vectors.get(fold), scope)
        for statement in folds.body:
            self._statement(statement, scope)
        for fold in folds.folds:
            self._finish(fold, scope)

    def _declare(self, fold: Fold, vector: Vec | None, scope: Scope) -> None:
        dtypes = tuple(part.dtype for part in fold.parts)
        tiled = vector is not None and vector.axis not in fold.bound and self._tiles(vector) > 0
        lanes = vector.lanes if vector is not None else 1
        count = self._tiles(vector) if tiled and vector else vector.unroll if vector else 1
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
        self.accumulators[fold] = _Accumulators(names, lanes, count, tiled)

    def _tiles(self, vector: Vec) -> int:
        """How many vectors the surrounding Par's piece has, 0 where this loop is not over such a piece."""
        if self.piece is None or self.piece[0].axis != vector.axis or not self.piece[0].exact:
            return 0
        return self.piece[0].size // vector.lanes

    def _finish(self, fold: Fold, scope: Scope) -> None:
        """Combines accumulators and lanes, and names each part's result."""
        made = self.accumulators[fold]
        results = list(made.names)
        if made.tiled:
            results = [f"{name}[t]" for name in made.names]
        elif made.lanes > 1 or made.count > 1:
            results = self._across(fold, made, scope)
        for i, result in enumerate(results):
            scope.names[Fold(fold.monoid, fold.bound, fold.parts, i)] = result

    def _across(self, fold: Fold, made: _Accumulators, scope: Scope) -> list[str]:
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
            combined = self._combination(fold, ["a"], ["b"], made.lanes)
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

    def _combination(self, fold: Fold, left: list[str], right: list[str], lanes: int) -> str:
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
            scope.add(f"{name} = {text.removeprefix('(').removesuffix(')') if _wrapped(text) else text};")

    def _accumulate(self, statement: Accumulate, scope: Scope, fresh_lanes: str | None, at: str = "0") -> None:
        fold = statement.fold
        made = self.accumulators[fold]
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

    # --- vector loops

    def _vec(self, loop: Vec, scope: Scope) -> None:
        if self._tiles(loop):
            self._tile(loop, scope)
        elif loop.lanes == 1:
            self._plain(loop, scope)
        else:
            self._lanes(loop, scope)

    def _range(self, loop: Vec) -> tuple[str, str]:
        if self.piece is not None and self.piece[0].axis == loop.axis:
            return self.piece[1], self.piece[2]
        return "0", str(loop.axis.extent)

    def _body(self, loop: Vec, scope: Scope, fresh_lanes: str | None = None, at: str = "0", tail: bool = False) -> None:
        for statement in loop.body:
            if isinstance(statement, Store):
                self._store(statement, scope, loop.lanes, streaming=statement.streaming and not tail)
            else:
                self._accumulate(statement, scope, fresh_lanes, at)

    def _inner(self, loop: Vec, scope: Scope, name: str) -> Scope:
        inner = Scope(scope)
        inner.variables[loop.axis] = name
        inner.vector = (loop.axis, loop.lanes)
        return inner

    def _tile(self, loop: Vec, scope: Scope) -> None:
        assert self.piece is not None
        name = self._loop_name(scope)
        inner = self._inner(loop, scope, name)
        step = "t" if loop.lanes == 1 else f"t * {loop.lanes}"
        inner.add(f"const int64_t {name} = {self.piece[1]} + {step};")
        self._body(loop, inner)
        tiles = self._tiles(loop)
        if loop.lanes == 1 and self._no_calls(loop):
            scope.add("#pragma omp simd")
        elif loop.lanes > 1 and tiles <= MOST_UNROLLED:
            scope.add(f"#pragma GCC unroll {tiles}")
        inner.close(f"for (int t = 0; t < {tiles}; ++t)")

    def _plain(self, loop: Vec, scope: Scope) -> None:
        name = self._loop_name(scope)
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
                sums.append(f" reduction({operator} : {self.accumulators[statement.fold].names[0]})")
        return "#pragma omp simd" + "".join(sums)

    def _no_calls(self, loop: Vec) -> bool:
        return not any(isinstance(s, Accumulate) and len(s.fold.parts) > 1 for s in loop.body)

    def _lanes(self, loop: Vec, scope: Scope) -> None:
        name = self._loop_name(scope)
        first, last = self._range(loop)
        if self.piece is not None and self.piece[0].axis == loop.axis:
            self._lanes_of_block(loop, scope, name, first, last)
            return
        extent, lanes = loop.axis.extent, loop.lanes
        done = 0
        if loop.unroll > 1:
            done = extent // (lanes * loop.unroll) * lanes * loop.unroll
            outer = Scope(scope)
            start = self.expressions.fresh("start")
            inner = self._inner(loop, outer, name)
            inner.add(f"const int64_t {name} = {start} + u * {lanes};")
            self._body(loop, inner, at="u")
            outer.add(f"#pragma GCC unroll {loop.unroll}")
            inner.close(f"for (int u = 0; u < {loop.unroll}; ++u)")
            outer.close(f"for (int64_t {start} = 0; {start} < {done}; {start} += {lanes * loop.unroll})")
        whole = extent // lanes * lanes
        if whole > done:
            inner = self._inner(loop, scope, name)
            self._body(loop, inner)
            inner.close(f"for (int64_t {name} = {done}; {name} < {whole}; {name} += {lanes})")
        if extent > whole:
            self._tail(loop, scope, name, extent - whole)

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
        inner = self._inner(loop, scope, name)
        self._body(loop, inner)
        inner.close(f"for (int64_t {name} = {first}; {name} + {loop.lanes} <= {last}; {name} += {loop.lanes})")
        assert self.piece is not None
        left = loop.axis.extent % self.piece[0].size % loop.lanes
        if left:
            tail = self._inner(loop, scope, name)
            tail.add(f"const int64_t {name} = {loop.axis.extent - loop.lanes};")
            self._body(loop, tail, tail=True)
            tail.close(f"if ({last} == {loop.axis.extent})")

    # --- stores

    def _store(self, statement: Store, scope: Scope, lanes: int, *, streaming: bool) -> None:
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
                scope.add(f"{buffer.name}[{where}] = {_stripped(text)};")
            return
        if widens(statement) and not streaming:
            value = value.children[0]
        text = self.expressions.splatted(value, scope, lanes)
        axis = scope.vector[0] if scope.vector else None
        if axis is None or statement.offset.coefficient(axis) != 1:
            self._scatter(statement, scope, text, lanes)
        elif buffer.dtype == "bool":
            self.expressions.need("store_truth")
            scope.add(f"store_truth<{lanes}>({at}, {text});")
        else:
            self.expressions.need("stream" if streaming else "store")
            scope.add(f"{'stream' if streaming else 'store'}({at}, {_stripped(text)});")

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


_LANE = Axis(99_999, 2)


def _wrapped(text: str) -> bool:
    return _stripped(text) != text


def _stripped(text: str) -> str:
    """Without parentheses around the whole."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0 and i < len(text) - 1:
            return text
    return text[1:-1]
