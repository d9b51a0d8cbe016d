"""A problem's source, read without running a line of it: what it must define, its size constants, its rewriting.

A problem is a PyTorch reference in KernelBench's format: `class Model(nn.Module)`, `get_inputs()` and
`get_init_inputs()`. Module-level constants with literal values may be overridden by name; the source is rewritten so
that everything after it (jail, graph, judge) sees one self-contained text.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from apps.kernels.facts import Constant, Quirk
from apps.kernels.literals import literal_value
from apps.kernels.quirks import quirks_of

Value = int | float | bool | str
LARGEST_SOURCE = 1 << 20  # characters; the longest of KernelBench's problems has about 20 thousand
REQUIRED_FUNCTIONS = {
    "get_inputs": "returns the list of tensors that forward takes",
    "get_init_inputs": "returns the list of what Model(...) is constructed with ([] if nothing)",
}


class BadProblem(ValueError):
    """A source that is no problem, told to the person who wrote it; `line` is where, if it is anywhere."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class ProblemSource:
    """A problem as read: `source` with the overrides written in, `original` without; constants hold what is in force."""

    source: str
    original: str
    constants: tuple[Constant, ...] = ()
    docstring: str = ""
    quirks: tuple[Quirk, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 of the source in force, in hexadecimal: the problem's identity."""
        return hashlib.sha256(self.source.encode()).hexdigest()


@dataclass(frozen=True)
class _Place:
    """Where a constant's value is written, in lines and UTF-8 bytes as `ast` counts them."""

    constant: Constant
    node: ast.expr


def read_problem(source: str, overrides: Mapping[str, Value] | None = None) -> ProblemSource:
    """The problem that `source` is, with constants replaced by `overrides`. Raises `BadProblem`."""
    source = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    tree = parse(source)
    _check_contract(tree)
    places = {place.constant.name: place for place in _constants(tree)}
    replaced = {name: _checked_override(places, name, value) for name, value in (overrides or {}).items()}
    constants = tuple(
        Constant(place.constant.name, replaced.get(name, place.constant.value), place.constant.line)
        for name, place in places.items()
    )
    return ProblemSource(
        source=_rewritten(source, [(places[name].node, value) for name, value in replaced.items()]),
        original=source,
        constants=constants,
        docstring=_docstring(tree),
        quirks=quirks_of(tree),
    )


def parse(source: str) -> ast.Module:
    """The syntax tree of a Python source. Raises `BadProblem` with the line and a caret under the fault."""
    if len(source) > LARGEST_SOURCE:
        raise BadProblem(f"The source has {len(source):,} characters; at most {LARGEST_SOURCE:,} are read.")
    try:
        return ast.parse(source)
    except SyntaxError as fault:
        raise BadProblem(_syntax_message(fault), fault.lineno) from None
    except (ValueError, RecursionError, MemoryError) as fault:
        raise BadProblem(f"The source can't be read as Python: {fault}.") from None


def _syntax_message(fault: SyntaxError) -> str:
    message = f"Syntax error in line {fault.lineno}: {fault.msg}"
    if not fault.text:
        return message
    line = fault.text.rstrip("\n")
    indent = len(line) - len(line.lstrip())
    column = max((fault.offset or 1) - 1 - indent, 0)
    width = 1
    if fault.end_lineno == fault.lineno and fault.end_offset and fault.offset:
        width = max(fault.end_offset - fault.offset, 1)
    return f"{message}\n    {line.strip()}\n    {' ' * column}{'^' * min(width, 80)}"


# --- what a problem must define ---------------------------------------------------------------------------------------


def _check_contract(tree: ast.Module) -> None:
    classes = {node.name: node for node in _top_level(tree) if isinstance(node, ast.ClassDef)}
    _check_model(classes)
    defined = {node.name: node for node in _top_level(tree) if isinstance(node, ast.FunctionDef)}
    assigned = set(_assigned_names(tree))
    literals = {target.id for node in tree.body for target, value in _pairs(node) if literal_value(value) is not None}
    for name, what in REQUIRED_FUNCTIONS.items():
        if name in defined and name not in literals:
            _check_no_arguments(defined[name])
        elif name in assigned:
            raise BadProblem(f"{name} must be a function (def {name}(): ...) that {what}.")
        else:
            raise BadProblem(f"There is no {name}(). Add one that {what}.")


def _check_model(classes: dict[str, ast.ClassDef]) -> None:
    model = classes.get("Model")
    if model is None:
        close = next((name for name in classes if name.lower() in ("model", "modelnew", "net", "module")), None)
        modules = [name for name, found in classes.items() if found.bases and _has_forward(found, classes)]
        close = close or (modules[0] if len(modules) == 1 else None)
        hint = f" There is a class {close}: rename it to Model." if close else ""
        raise BadProblem(f"There is no class Model. A problem defines class Model(nn.Module) with a forward.{hint}")
    if not model.bases:
        raise BadProblem("class Model must derive from torch.nn.Module: class Model(nn.Module).", model.lineno)
    if not _has_forward(model, classes):
        raise BadProblem("class Model has no forward(self, ...).", model.lineno)


def _has_forward(model: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """Whether forward is written in the class or may come from a base: local ones are followed, others may have it."""
    seen: set[str] = set()
    waiting = [model]
    while waiting:
        current = waiting.pop()
        if any(isinstance(node, ast.FunctionDef) and node.name == "forward" for node in current.body):
            return True
        for base in current.bases:
            name = ast.unparse(base)
            if name in classes and name not in seen:
                seen.add(name)
                waiting.append(classes[name])
            elif name not in classes and name.rpartition(".")[2] != "Module":
                return True  # such as nn.ReLU, which brings its own
    return False


def _check_no_arguments(function: ast.FunctionDef) -> None:
    given = function.args
    needed = len(given.posonlyargs) + len(given.args) - len(given.defaults)
    needed += sum(default is None for default in given.kw_defaults)
    if needed:
        raise BadProblem(f"{function.name}() must be callable without arguments.", function.lineno)


# --- constants --------------------------------------------------------------------------------------------------------


def _constants(tree: ast.Module) -> Iterator[_Place]:
    """Constants assigned exactly once at module level to a literal or to arithmetic on literals."""
    names = list(_assigned_names(tree))
    for statement in tree.body:
        for target, node in _pairs(statement):
            value = literal_value(node)
            if value is not None and names.count(target.id) == 1 and not target.id.startswith("__"):
                yield _Place(Constant(target.id, value, target.lineno), node)


def _pairs(statement: ast.stmt) -> Iterator[tuple[ast.Name, ast.expr]]:
    """Name and value of `N = 1`, `N: int = 1` and `M, N = 1, 2`."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name) and statement.value is not None:
        yield statement.target, statement.value
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        yield target, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for name, node in zip(target.elts, value.elts, strict=True):
            if isinstance(name, ast.Name):
                yield name, node


def _assigned_names(tree: ast.Module) -> Iterator[str]:
    """Every name a module-level statement stores to, as often as it does."""
    for statement in _top_level(tree):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _checked_override(places: Mapping[str, _Place], name: str, value: Value) -> Value:
    place = places.get(name)
    if place is None:
        have = ", ".join(f"{p.constant.name} = {p.constant.value!r}" for p in places.values())
        raise BadProblem(
            f"There is no constant {name} to set. " + (f"The problem has: {have}." if have else "The problem has none.")
        )
    now = place.constant.value
    if isinstance(now, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(now) is not type(value):
        kinds = {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}
        raise BadProblem(
            f"{name} is {now!r} in line {place.constant.line}: it takes {kinds[type(now)]}, not {value!r}."
        )
    return value


def _rewritten(source: str, replacements: list[tuple[ast.expr, Value]]) -> str:
    """The source with each node's text replaced by a value's; line numbers stay as they are."""
    if not replacements:
        return source
    lines = [line.encode() for line in source.split("\n")]
    in_order = sorted(replacements, key=lambda item: (item[0].lineno, item[0].col_offset), reverse=True)
    for node, value in in_order:
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        tail = lines[last][node.end_col_offset :]
        lines[first] = lines[first][: node.col_offset] + repr(value).encode() + tail
        for line in range(first + 1, last + 1):
            lines[line] = b""
    return b"\n".join(lines).decode()


# --- reading ----------------------------------------------------------------------------------------------------------


def _top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements that run when the module is imported, those in `if`, `try` and `with` included."""
    waiting: list[ast.stmt] = list(reversed(tree.body))
    while waiting:
        statement = waiting.pop()
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            inner = [*statement.body, *getattr(statement, "orelse", []), *getattr(statement, "finalbody", [])]
            waiting.extend(reversed(inner))


def _docstring(tree: ast.Module) -> str:
    """The module's docstring, else that of Model."""
    text = ast.get_docstring(tree)
    if text:
        return text
    model = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"), None)
    return (ast.get_docstring(model) if model else None) or ""
