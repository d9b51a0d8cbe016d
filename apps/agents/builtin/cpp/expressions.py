"""Expressions of the form as C++: each value is computed in the outermost block that knows what it depends on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from apps.agents.builtin.cpp.loads import loaded
from apps.agents.builtin.cpp.scalar_text import TYPES, literal, spelling
from apps.agents.builtin.cpp.scope import Scope
from apps.agents.builtin.form import Const, Expr, Fold, Load, Name, Op, Position, Scan, folds_read, scans_read, walk
from apps.agents.builtin.index import Index

# A value used once is written where it is used, unless the line would become longer than this.
LONGEST_TEXT = 70
# Operations within each other, at most, before one of them gets a name.
LONGEST_CHAIN = 16
LOOP_NAMES = "ijkmnop"
# Loop variables within vectors, which the printer writes itself: lanes, tiles, accumulators.
COUNTERS = ("l", "t", "u")
_LETTERS = {"float32": "F", "float64": "D", "int32": "I", "int64": "J", "bool": "I"}


class Expressions:
    """Writes expressions into scopes and remembers which pieces and vector types they used."""

    def __init__(self, roots: Iterable[Expr], *, polynomials: bool) -> None:
        self.polynomials = polynomials
        self.pieces: dict[str, None] = {}
        self.aliases: dict[str, str] = {}
        self.taken: Counter[str] = Counter(COUNTERS)
        self.uses: Counter[Expr] = Counter()
        self.descending = False
        self.counted: set[Expr] = set()
        self.expect(roots)

    def expect(self, roots: Iterable[Expr]) -> None:
        """Counts who uses whom below these roots, so that what is used twice gets a name."""
        for node in walk(*roots):
            if node not in self.counted:
                self.counted.add(node)
                self.uses.update(node.children)

    # --- types and names

    def need(self, piece: str) -> None:
        """Includes a piece of `functions`."""
        self.pieces[piece] = None

    def fresh(self, stem: str) -> str:
        """A name that is not taken: stem, stem1, stem2, .."""
        while True:
            number = self.taken[stem]
            self.taken[stem] += 1
            name = f"{stem}{number or ''}"
            if not number or not self.taken[name]:
                self.taken[name] += bool(number)
                return name

    def loop_name(self, scope: Scope) -> str:
        """A variable for a loop within this block."""
        used: set[str] = set()
        one: Scope | None = scope
        while one is not None:
            used |= {name.split("_")[0] for name in one.variables.values()}
            one = one.parent
        return next(
            (name for name in LOOP_NAMES if name not in used and not self.taken[name]),
            self.fresh("index"),
        )

    def vector_type(self, dtype: str, lanes: int) -> str:
        """The C++ type of `lanes` elements; a plain number for one."""
        if lanes == 1:
            return TYPES[dtype]
        alias = f"{_LETTERS[dtype]}{lanes}"
        self.need("vec")
        self.aliases[alias] = f"vec<{TYPES['int32' if dtype == 'bool' else dtype]}, {lanes}>"
        return alias

    def lanes(self, node: Expr, scope: Scope) -> int:
        """How many lanes the node has here: 1 if it does not vary along the vector axis."""
        if scope.vector is None or scope.vector[0] not in node.axes:
            return 1
        return scope.vector[1]

    def home(self, node: Expr, scope: Scope) -> Scope:
        """The outermost block in which all that the node depends on is known."""
        homes = [scope.binder(axis) for axis in node.axes]
        homes += [h for f in (*folds_read(node), *scans_read(node)) if (h := scope.holder(f)) is not None]
        deepest = max(homes, key=lambda one: one.depth, default=None)
        if deepest is None:
            deepest = scope
            while deepest.parent is not None:
                deepest = deepest.parent
        return deepest

    # --- expressions

    def write(self, node: Expr, scope: Scope) -> str:
        """The node's text in this block; what must be computed first is added as lines."""
        if isinstance(node, Const):
            return literal(node.value, node.dtype)
        known = scope.named(node)
        if known is not None:
            return known
        if node.height > LONGEST_CHAIN and not self.descending:
            self._name_on_the_way(node, scope)
        home = self.home(node, scope)
        text = self._text(node, home)
        worth = self.uses[node] > 1 or (home is not scope and not _trivial(node)) or len(text) > LONGEST_TEXT
        worth = worth or node.height % LONGEST_CHAIN == 0
        if isinstance(node, Name) or not worth:
            return text
        name = self.fresh(_stem(node))
        home.names[node] = name
        home.add(f"const {self._declared(node, home)} {name} = {bare(text)};")
        return name

    def _name_on_the_way(self, node: Expr, scope: Scope) -> None:
        """Gives long chains names here and there, from the inside, so that no line and no recursion becomes too long."""
        self.descending = True
        for one in walk(node, folds=False):
            if one is not node and one.height % LONGEST_CHAIN == 0 and scope.named(one) is None:
                self.write(one, scope)
        self.descending = False

    def splatted(self, node: Expr, scope: Scope, lanes: int) -> str:
        """The node's text as a vector of that many lanes."""
        text = self.write(node, scope)
        if lanes == 1 or self.lanes(node, scope) == lanes:
            return text
        if node.dtype == "bool":
            self.need("select")
            return f"mask<{self.vector_type('int32', lanes)}>({text})"
        self.need("splat")
        return f"splat<{self.vector_type(node.dtype, lanes)}>({text})"

    def _declared(self, node: Expr, scope: Scope) -> str:
        lanes = self.lanes(node, scope)
        return "auto" if node.dtype == "bool" and lanes > 1 else self.vector_type(node.dtype, lanes)

    def _text(self, node: Expr, scope: Scope) -> str:
        lanes = self.lanes(node, scope)
        if isinstance(node, Load):
            return loaded(self, node, scope, lanes)
        if isinstance(node, Position):
            return self._position(node.index, "int64", scope, lanes)
        if isinstance(node, Fold | Scan | Name):
            raise KeyError(f"{node} has not been computed where it is read")
        assert isinstance(node, Op)
        if node.name == "cast":
            return self._cast(node, scope, lanes)
        return self._operation(node, scope, lanes)

    def _operation(self, node: Op, scope: Scope, lanes: int) -> str:
        constant = next((arg for arg in node.args if isinstance(arg, Const)), None)
        if node.name in ("maximum", "minimum") and constant is not None and constant.value == constant.value:
            return self._bounded(node, constant, scope, lanes)
        spelled = spelling(node.name, node.dtype, len(node.args), polynomials=self.polynomials, vector=lanes > 1)
        for piece in spelled.needs:
            self.need(piece)
        logical = node.name in ("and", "or", "not")
        args = []
        for position, arg in enumerate(node.args):
            condition = node.name == "select" and position == 0
            wide = spelled.vectors and lanes > 1 and not logical and not condition
            args.append(self.splatted(arg, scope, lanes) if wide else self.write(arg, scope))
        return spelled.text.format(*args)

    def _bounded(self, node: Op, bound: Const, scope: Scope, lanes: int) -> str:
        """With a number as bound one comparison is enough: NaN fails it and passes through."""
        other = next(arg for arg in node.args if arg is not bound)
        function = "at_least" if node.name == "maximum" else "at_most"
        if lanes > 1:
            self.need("bounded")
            return f"{function}({self.splatted(bound, scope, lanes)}, {bare(self.splatted(other, scope, lanes))})"
        x, limit = self.write(other, scope), literal(bound.value, bound.dtype)
        relation = "<" if node.name == "maximum" else ">"
        if not x.isidentifier():
            name = self.fresh(_stem(other))
            scope.names[other] = name
            scope.add(f"const {self._declared(other, scope)} {name} = {bare(x)};")
            x = name
        return f"({x} {relation} {limit} ? {limit} : {x})"

    def _cast(self, node: Op, scope: Scope, lanes: int) -> str:
        arg = node.args[0]
        if isinstance(arg, Position) and node.dtype == "int32":
            return self._position(arg.index, "int32", scope, lanes)
        text = self.write(arg, scope)
        if node.dtype == "bool":
            return f"({text} != 0)"
        if arg.dtype == "bool":
            self.need("truth")
            return f"number<{self.vector_type(node.dtype, lanes)}>({text})"
        if lanes == 1:
            return f"static_cast<{TYPES[node.dtype]}>({bare(text)})"
        self.need("convert")
        return f"convert<{TYPES[node.dtype]}>({bare(text)})"

    def _position(self, index: Index, dtype: str, scope: Scope, lanes: int) -> str:
        if lanes == 1:
            text = scope.index(index)
            return f"static_cast<int32_t>({text})" if dtype == "int32" else f"int64_t({text})"
        assert scope.vector is not None
        step = index.coefficient(scope.vector[0])
        vector = self.vector_type(dtype, lanes)
        if step is None:
            self.need("gather")
            return f"gather<{vector}>([&](int64_t l) {{ return {scope.index(index, 'l', scope.vector[0])}; }})"
        self.need("counting")
        return f"counting<{vector}>({scope.index(index)}, {step})"


def _trivial(node: Expr) -> bool:
    """Whether naming the node outside a loop would only add a line: an index as a number."""
    return isinstance(node, Position)


def bare(text: str) -> str:
    """Without parentheses around the whole."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for i, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if i == len(text) - 1 else text
    return text


def _stem(node: Expr) -> str:
    if isinstance(node, Load):
        return f"{node.buffer.name}_"
    return {"exp": "e", "div": "q", "sqrt": "root", "lt": "less", "le": "less", "erf": "curve", "tanh": "curve"}.get(
        node.name if isinstance(node, Op) else "", "t"
    )
