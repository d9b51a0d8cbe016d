"""A kernel as one C++ function with C linkage: pointers in, nothing out."""

from __future__ import annotations

from apps.agents.builtin.cpp.accumulation import Accumulation
from apps.agents.builtin.cpp.expressions import Expressions
from apps.agents.builtin.cpp.functions import text_of
from apps.agents.builtin.cpp.running import ScanLoops
from apps.agents.builtin.cpp.scalar_text import MEMORY
from apps.agents.builtin.cpp.scope import Scope
from apps.agents.builtin.cpp.vector_loops import Dealt, VectorLoops
from apps.agents.builtin.form import Buffer
from apps.agents.builtin.nest import (
    Accumulate,
    Folds,
    For,
    Kernel,
    Par,
    Piece,
    Running,
    Statement,
    Store,
    Vec,
    expressions_in,
    statements_in,
)

INCLUDES = ("cmath", "cstdint", "cstring", "type_traits", "utility")


def print_kernel(kernel: Kernel, function: str, *, polynomials: bool) -> str:
    """The whole C++ source."""
    return _Printer(kernel, polynomials).source(function)


class _Printer:
    def __init__(self, kernel: Kernel, polynomials: bool) -> None:
        self.kernel = kernel
        roots = list(expressions_in(*kernel.everything))
        self.expressions = Expressions(roots, polynomials=polynomials)
        kept = [s.value for s in statements_in(*kernel.everything) if isinstance(s, Store) and s.kept]
        self.expressions.uses.update(kept)
        for buffer in (*kernel.reads, *kernel.writes, *kernel.scratch):
            self.expressions.fresh(buffer.name)
        self.piece_number = "0"
        self.accumulation = Accumulation(self.expressions)
        self.loops = VectorLoops(self.expressions, self.accumulation)
        self.scans = ScanLoops(self.expressions, self.accumulation, self.loops)

    def source(self, function: str) -> str:
        """Includes, pieces, types, the function; before it one for each round, with its number behind the name."""
        parameters = [self._parameter(buffer, True) for buffer in self.kernel.reads]
        parameters += [self._parameter(buffer, False) for buffer in (*self.kernel.writes, *self.kernel.scratch)]
        body: list[str] = []
        for number, statements in enumerate((*self.kernel.rounds, self.kernel.statements)):
            if not statements:
                continue
            outer = Scope()
            for statement in statements:
                self._statement(statement, outer)
            name = function if number == len(self.kernel.rounds) else f"{function}{number}"
            head = f'extern "C" void {name}({", ".join(parameters)}) {{'
            body += [*([""] if body else []), head, *(f"  {line}" for line in outer.lines), "}"]
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
            self.loops.write(statement, scope)
        elif isinstance(statement, Folds):
            self._folds(statement, scope)
        elif isinstance(statement, Running):
            self.scans.write(statement, scope)
        elif isinstance(statement, Store):
            self.loops.store(statement, scope, 1, streaming=False)
        else:
            self.accumulation.accumulate(statement, scope, None)

    def _par(self, par: Par, scope: Scope) -> None:
        inner = Scope(scope)
        streaming = any(isinstance(s, Store) and s.streaming for s in statements_in(par))
        pieces = par.piece.count if par.piece else 1
        head = self._par_head(par, inner, scope, pieces)
        for statement in par.body:
            self._statement(statement, inner)
        self.loops.dealt = None
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
            name = self.expressions.loop_name(scope)
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
            name = self.expressions.loop_name(inner)
            over = point if step == 1 else f"{point} / {step}"
            wrap = "" if axis == par.axes[0] else f" % {axis.extent}"
            inner.variables[axis] = name
            inner.add(f"const int64_t {name} = {over}{wrap};")
        if par.piece is not None:
            self.piece_number = point if not par.axes else f"{point} % {pieces}"

    def _piece(self, piece: Piece, inner: Scope) -> None:
        name = self.expressions.loop_name(inner)
        first, last = f"{name}_first", f"{name}_last"
        start = "0" if piece.count == 1 else f"{self.piece_number} * {piece.size}"
        if piece.count > 1 and " % " in start:
            start = f"({self.piece_number}) * {piece.size}"
        if piece.exact and piece.axis.extent % piece.size:
            self.expressions.need("lesser")
            start = f"lesser({start}, {piece.axis.extent - piece.size})"
        if piece.start is not None:
            inner.variables[piece.start] = first
        if not piece.exact or piece.start is not None:
            inner.add(f"const int64_t {first} = {start};")
        if not piece.exact:
            end = str(piece.axis.extent)
            if piece.count > 1:
                end = f"{first} + {piece.size}"
                if piece.axis.extent % piece.size:
                    self.expressions.need("lesser")
                    end = f"lesser({end}, {piece.axis.extent})"
            inner.add(f"const int64_t {last} = {end};")
        self.loops.dealt = Dealt(piece, first, last)

    def _for(self, loop: For, scope: Scope) -> None:
        inner = Scope(scope)
        name = self.expressions.loop_name(scope)
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
            vector = vectors.get(fold)
            self.accumulation.declare(fold, vector, self.loops.tiles(vector) if vector else 0, scope)
        for statement in folds.body:
            self._statement(statement, scope)
        for fold in folds.folds:
            self.accumulation.finish(fold, scope)
