"""Scans in C++: along an axis that lies side by side in memory, or down one while vectors lie across it."""

from __future__ import annotations

from apps.agents.builtin.cpp.accumulation import Accumulation
from apps.agents.builtin.cpp.expressions import Expressions, bare
from apps.agents.builtin.cpp.scalar_text import TYPES
from apps.agents.builtin.cpp.scope import Scope
from apps.agents.builtin.cpp.vector_loops import MOST_UNROLLED, VectorLoops
from apps.agents.builtin.form import Fold, Name, Scan
from apps.agents.builtin.monoids import MONOIDS
from apps.agents.builtin.nest import Running, Store


class ScanLoops:
    """Writes the loops of scans, with what they store."""

    def __init__(self, expressions: Expressions, folds: Accumulation, loops: VectorLoops) -> None:
        self.expressions = expressions
        self.folds = folds
        self.loops = loops

    def write(self, running: Running, scope: Scope) -> None:
        """The loop over the scanned axis."""
        self.expressions.expect(scan.here for scan in running.scans)
        if running.body.axis == running.axis:
            self._along(running, scope)
        else:
            self._across(running, scope)

    # --- vectors across the axis: each lane carries its own value

    def _across(self, running: Running, scope: Scope) -> None:
        vector, tiles = running.body, self.loops.tiles(running.body)
        carried: dict[Scan, str] = {}
        for scan in running.scans:
            carried[scan] = name = self.expressions.fresh("running")
            (start,) = MONOIDS[scan.monoid].identity((scan.dtype,))
            scope.add(f"{self.expressions.vector_type(scan.dtype, vector.lanes)} {name}[{tiles}];")
            scope.add(f"for (auto& one : {name}) one = {self.expressions.splatted(start, scope, vector.lanes)};")
        outer = Scope(scope)
        step = self.expressions.loop_name(scope)
        outer.variables[running.axis] = step
        inner = Scope(outer)
        place = self.expressions.loop_name(outer)
        inner.variables[vector.axis] = place
        inner.vector = (vector.axis, vector.lanes)
        inner.add(f"const int64_t {place} = {'t' if vector.lanes == 1 else f't * {vector.lanes}'};")
        for scan, name in carried.items():
            so_far = Name(f"{name}[t]", scan.dtype, frozenset({vector.axis}))
            inner.names[so_far] = so_far.name
            (new,) = MONOIDS[scan.monoid].combine((so_far,), (scan.here,))
            self.expressions.expect((new,))
            inner.add(f"{name}[t] = {bare(self.expressions.splatted(new, inner, vector.lanes))};")
            inner.names[scan] = so_far.name
        self._stores(running, inner, vector.lanes)
        if vector.lanes > 1 and tiles <= MOST_UNROLLED:
            outer.add(f"#pragma GCC unroll {tiles}")
        inner.close(f"for (int t = 0; t < {tiles}; ++t)")
        outer.close(f"for (int64_t {step} = 0; {step} < {running.axis.extent}; ++{step})")

    # --- vectors along the axis: a scan within each, then what came before it

    def _along(self, running: Running, scope: Scope) -> None:
        extent, lanes = running.axis.extent, running.body.lanes
        whole = extent // lanes * lanes if lanes > 1 else 0
        carried: dict[Scan, str] = {}
        for scan in running.scans:
            carried[scan] = self._carry(scan, lanes, scope)
        name = self.expressions.loop_name(scope)
        if whole:
            self._vectors(running, carried, scope, name, whole)
        if extent > whole:
            self._rest(running, carried, scope, name, whole)

    def _carry(self, scan: Scan, lanes: int, scope: Scope) -> str:
        name = self.expressions.fresh("running")
        (start,) = MONOIDS[scan.monoid].identity((scan.dtype,))
        kind = self.expressions.vector_type(scan.dtype, lanes)
        value = self.expressions.splatted(start, scope, lanes)
        scope.add(f"{kind} {name} = {value};")
        if lanes > 1:
            scope.add(f"const {kind} {name}_none = {value};")
        as_fold = Fold(scan.monoid, (scan.bound,), (scan.part,))
        combined = self.folds.combination(as_fold, ["a"], ["b"], 2)
        scope.add(f"const auto {name}_with = [](auto a, auto b) {{ return {bare(combined)}; }};")
        return name

    def _vectors(self, running: Running, carried: dict[Scan, str], scope: Scope, name: str, whole: int) -> None:
        lanes = running.body.lanes
        inner = Scope(scope)
        inner.variables[running.axis] = name
        inner.vector = (running.axis, lanes)
        self.expressions.need("scan_lanes")
        for scan, carry in carried.items():
            kind = self.expressions.vector_type(scan.dtype, lanes)
            here = self.expressions.splatted(scan.here, inner, lanes)
            total, within = self.expressions.fresh("total"), self.expressions.fresh("within")
            inner.add(f"const {kind} {within} = scan_lanes({bare(here)}, {carry}_none, {carry}_with);")
            inner.add(f"const {kind} {total} = {carry}_with({carry}, {within});")
            # What is carried waits for one combination alone, not for the spreading of a lane.
            self.expressions.need("splat")
            inner.add(f"{carry} = {carry}_with({carry}, splat<{kind}>({within}[{lanes - 1}]));")
            inner.names[scan] = total
        self._stores(running, inner, lanes)
        inner.close(f"for (int64_t {name} = 0; {name} < {whole}; {name} += {lanes})")

    def _rest(self, running: Running, carried: dict[Scan, str], scope: Scope, name: str, first: int) -> None:
        """One element after the other: all of them without vectors, else the last few."""
        single = {}
        for scan, carry in carried.items():
            single[scan] = carry
            if running.body.lanes > 1:
                single[scan] = self.expressions.fresh("running")
                scope.add(f"{TYPES[scan.dtype]} {single[scan]} = {carry}[0];")
        inner = Scope(scope)
        inner.variables[running.axis] = name
        inner.vector = None
        for scan, so_far in single.items():
            inner.add(f"{so_far} = {carried[scan]}_with({so_far}, {bare(self.expressions.write(scan.here, inner))});")
            inner.names[scan] = so_far
        self._stores(running, inner, 1)
        inner.close(f"for (int64_t {name} = {first}; {name} < {running.axis.extent}; ++{name})")

    def _stores(self, running: Running, scope: Scope, lanes: int) -> None:
        for statement in running.body.body:
            assert isinstance(statement, Store)
            self.loops.store(statement, scope, lanes, streaming=statement.streaming)
