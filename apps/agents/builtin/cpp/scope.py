"""Blocks of C++ as they are written: what is known in them by name, and which loop variables they bind."""

from __future__ import annotations

from apps.agents.builtin.form import Expr
from apps.agents.builtin.index import Axis, Index, Quotient, Remainder


class Scope:
    """One block. Lines may still be added to an outer block while an inner one is written: they come before it."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.depth: int = parent.depth + 1 if parent else 0
        self.lines: list[str] = []
        self.variables: dict[Axis, str] = {}
        self.names: dict[Expr, str] = {}
        self.vector: tuple[Axis, int] | None = parent.vector if parent else None

    def add(self, line: str) -> None:
        """A line of this block."""
        self.lines.append(line)

    def close(self, head: str, foot: str = "}") -> None:
        """Writes this block into its parent, behind what the parent holds by now."""
        assert self.parent is not None
        self.parent.lines += [f"{head} {{", *(f"  {line}" for line in self.lines), foot]

    def named(self, node: Expr) -> str | None:
        """What the node is called here, if it is."""
        scope: Scope | None = self
        while scope is not None:
            if node in scope.names:
                return scope.names[node]
            scope = scope.parent
        return None

    def variable(self, axis: Axis) -> str:
        """The loop variable of an axis."""
        return self.binder(axis).variables[axis]

    def binder(self, axis: Axis) -> Scope:
        """The innermost block that binds an axis."""
        scope: Scope | None = self
        while scope is not None:
            if axis in scope.variables:
                return scope
            scope = scope.parent
        raise KeyError(f"axis {axis.number} of extent {axis.extent} is not bound here")

    def holder(self, node: Expr) -> Scope | None:
        """The block in which a node has its name, if it has one."""
        scope: Scope | None = self
        while scope is not None and node not in scope.names:
            scope = scope.parent
        return scope

    def index(self, index: Index, plus: str = "", along: Axis | None = None) -> str:
        """An index as an expression of loop variables; `plus` is added to the variable of `along`."""
        terms = []
        for atom, step in index.terms:
            if isinstance(atom, Axis):
                text = self.variable(atom)
                text = f"({text} + {plus})" if plus and atom == along else text
            else:
                text = self._division(atom, plus, along)
            terms.append(text if step == 1 else f"{text} * {step}")
        if index.constant or not terms:
            terms.append(str(index.constant))
        return " + ".join(terms).replace("+ -", "- ")

    def _division(self, atom: Quotient | Remainder, plus: str, along: Axis | None) -> str:
        low, _ = atom.of.range()
        # C++ rounds towards 0, so what may be negative is moved up by a multiple first.
        lift = -(low // atom.by) if low < 0 else 0
        of = self.index(atom.of + lift * atom.by, plus, along)
        if isinstance(atom, Remainder):
            return f"(({of}) % {atom.by})"
        return f"(({of}) / {atom.by} - {lift})" if lift else f"(({of}) / {atom.by})"
