"""Reading a candidate's syntax tree: what names stand for, what runs when it is called, lines and texts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

Function = ast.FunctionDef | ast.AsyncFunctionDef
WITH_GRADIENTS = frozenset({"backward", "jvp", "vjp"})  # of a function that autograd knows: a call has no gradient
SET_UP = frozenset({"__init__", "prepare", "__new__", "load_state_dict", "_load_from_state_dict", "__init_subclass__"})


@dataclass
class Reading:
    """A candidate's tree with what the rules ask of it. `layers` are attributes of ModelNew that hold torch layers."""

    tree: ast.Module
    aliases: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    model: ast.ClassDef | None = None
    called: list[Function] = field(default_factory=list)
    layers: dict[str, str] = field(default_factory=dict)
    parameters: set[str] = field(default_factory=set)

    def dotted(self, node: ast.expr) -> str:
        """The full name an expression stands for (`torch.nn.functional.relu`), empty if it is none."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        parts.append(self.aliases.get(node.id, node.id))
        return ".".join(reversed(parts))


def read(tree: ast.Module) -> Reading:
    """What a candidate's tree says, before any rule."""
    reading = Reading(tree, aliases=dict(_aliases(tree)))
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            reading.classes.setdefault(node.name, node)
    reading.functions = {node.name: node for node in ast.walk(tree) if isinstance(node, Function)}
    reading.model = reading.classes.get("ModelNew")
    if reading.model:
        reading.called = list(_closure(reading, reading.model))
        _read_set_up(reading, reading.model)
    return reading


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield (name.asname or name.name.split(".")[0]), (name.name if name.asname else name.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for name in node.names:
                yield (name.asname or name.name), f"{node.module}.{name.name}"


def methods(owner: ast.ClassDef) -> dict[str, Function]:
    """A class's own methods by name."""
    return {node.name: node for node in owner.body if isinstance(node, Function)}


def _closure(reading: Reading, model: ast.ClassDef) -> Iterator[Function]:
    """Functions that run in a call: forward and what it names, methods of local classes it names included."""
    top_level = {node.name: node for node in reading.tree.body if isinstance(node, Function)}
    own = methods(model)
    waiting = [
        own[name] for name in ("forward", "__call__", "_call_impl", "__getattr__", "__getattribute__") if name in own
    ]
    seen: set[int] = set()
    while waiting:
        function = waiting.pop(0)
        if id(function) in seen:
            continue
        seen.add(id(function))
        yield function
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if node.id in top_level:
                    waiting.append(top_level[node.id])
                elif node.id in reading.classes and node.id != model.name:
                    owner = reading.classes[node.id]
                    passive = SET_UP | WITH_GRADIENTS if _is_known_to_autograd(reading, owner) else SET_UP
                    waiting += [method for name, method in methods(owner).items() if name not in passive]
            elif isinstance(node, ast.Attribute) and _is_own(node) and node.attr in own and node.attr not in SET_UP:
                waiting.append(own[node.attr])


def _is_known_to_autograd(reading: Reading, owner: ast.ClassDef) -> bool:
    return any(
        reading.dotted(base) in ("torch.autograd.Function", "torch.autograd.function.Function") for base in owner.bases
    )


def _is_own(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def _read_set_up(reading: Reading, model: ast.ClassDef) -> None:
    """Which attributes hold torch layers, which hold parameters and buffers."""
    for function in methods(model).values():
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
                kind = reading.dotted(node.value.func)
                for target in node.targets:
                    _note_attribute(reading, target, kind)
            elif (
                isinstance(node, ast.Call)
                and _is_self(node.func, ("register_buffer", "register_parameter"))
                and node.args
            ):
                name = node.args[0]
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    reading.parameters.add(name.value)


def _note_attribute(reading: Reading, target: ast.expr, kind: str) -> None:
    if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"):
        return
    if kind in ("torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.Buffer"):
        reading.parameters.add(target.attr)
    elif kind.startswith("torch.nn.") and kind.rpartition(".")[2][:1].isupper():
        reading.layers[target.attr] = kind.rpartition(".")[2]


def _is_self(node: ast.expr, names: tuple[str, ...]) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr in names
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    )


def texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text in the source that is not a docstring, with the line it begins in; of f-strings the fixed parts."""
    documentation = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            documentation.add(id(node.value))
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else " x " for part in node.values]
            inner |= {id(part) for part in node.values}
            yield node.lineno, "".join(str(part) for part in parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation | inner:
            yield node.lineno, node.value
