"""Quirks of a problem that can be seen in its text: nothing is refused here, the jail finds out what is true."""

from __future__ import annotations

import ast

from apps.kernels.facts import Quirk

_RANDOM = {
    "rand",
    "randn",
    "randint",
    "rand_like",
    "randn_like",
    "randint_like",
    "bernoulli",
    "multinomial",
    "randperm",
}
_RANDOM_LAYERS = {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "RReLU"}


def quirks_of(tree: ast.Module) -> tuple[Quirk, ...]:
    """What a person should know before the problem runs: random numbers in Model, devices by name, reading of values."""
    model = next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Model"), None)
    found: dict[str, Quirk] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            _note(found, _device_quirk(node))
    forward = _forward(model)
    for node in ast.walk(forward) if forward else ():
        if isinstance(node, ast.Call):
            _note(found, _forward_quirk(node))
    for node in ast.walk(model) if model else ():
        if isinstance(node, ast.Call) and _called(node) in _RANDOM_LAYERS:
            detail = f"line {node.lineno}: {_called(node)} draws random numbers while the model is in training mode"
            _note(found, Quirk("random", detail))
    return tuple(found.values())


def _note(found: dict[str, Quirk], quirk: Quirk | None) -> None:
    if quirk:
        found.setdefault(quirk.name, quirk)


def _forward(model: ast.ClassDef | None) -> ast.FunctionDef | None:
    body = model.body if model else []
    return next((node for node in body if isinstance(node, ast.FunctionDef) and node.name == "forward"), None)


def _called(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _device_quirk(node: ast.Call) -> Quirk | None:
    on_cuda = _called(node) == "cuda"
    for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
        text = argument.value if isinstance(argument, ast.Constant) else None
        on_cuda = on_cuda or (isinstance(text, str) and text.split(":")[0] == "cuda")
    if not on_cuda:
        return None
    return Quirk("device by name", f"line {node.lineno}: names a CUDA device; the host decides where a problem runs")


def _forward_quirk(node: ast.Call) -> Quirk | None:
    name = _called(node)
    if name in _RANDOM:
        return Quirk("random", f"line {node.lineno}: forward draws random numbers ({name})")
    if name in ("item", "tolist"):
        return Quirk("reads values", f"line {node.lineno}: forward reads a tensor's values in Python ({name})")
    return None
