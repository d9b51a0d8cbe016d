"""Parts of a file put in the place of the same parts of another: functions, constants, methods, the kernel's text."""

from __future__ import annotations

import ast
import re

from apps.agents.writers.unusable import Unusable

_DOTS = r"(?:\.{3}|…)"
_WORDS = r"\b(?:unchanged|same|rest|remaining|existing|as before|previous|omitted)\b"
# A comment of nothing but dots, or of dots and a word for what they stand for: other comments may hold either.
_ELISION = re.compile(
    rf"^[ \t]*(?:#|//|/\*)[ \t]*(?:{_DOTS}[ \t]*(?:\*/)?[ \t]*$|(?=.*{_DOTS}).*{_WORDS}.*$)",
    re.IGNORECASE | re.MULTILINE,
)
_EXPORTED = re.compile(r'extern\s+"C"\s+[\w\s*]*?\b(\w+)\s*\(')
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def elision(source: str) -> str | None:
    """The first comment that stands for code which was left out, or None."""
    found = _ELISION.search(source)
    return found.group(0).strip() if found else None


def merged(base: str, part: str) -> str:
    """The base with every top-level definition of `part` in the place of its own. Raises `Unusable`.

    A class of which only some methods are given keeps its others. What the base does not have comes before `ModelNew`.
    """
    tree = _parsed(part)
    for node in tree.body:
        text = _text(part, node)
        if isinstance(node, ast.Expr):
            continue
        if isinstance(node, ast.ClassDef) and _is_partial(part, node) and _named(base, node.name) is not None:
            base = _with_methods(base, part, node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            base = base if text in base else f"{text}\n{base}"
        elif elision(text):
            raise Unusable(f"it leaves parts out ({elision(text)!r}). Give the whole file")
        else:
            base = _with(base, _name(node), text)
    return base


def with_text(source: str, name: str, text: str) -> str:
    """The source with a constant of that name, defined after its imports."""
    tree = _parsed(source)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    at = max((node.end_lineno or node.lineno for node in imports), default=0)
    lines = source.splitlines()
    return "\n".join([*lines[:at], f"{name} = {_raw(text)}", *lines[at:]]) + "\n"


def with_kernel(base: str, text: str) -> str:
    """The base with another kernel's text, where it can be told which constant holds it. Raises `Unusable`."""
    if elision(text):
        raise Unusable(f"the kernel leaves parts out ({elision(text)!r}). Give the whole file")
    holders = [
        node
        for node in _parsed(base).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and "extern" in str(node.value.value)
    ]
    if len(holders) != 1:
        raise Unusable("it is a kernel alone. Give the whole Python file")
    held = holders[0].value
    assert isinstance(held, ast.Constant)
    lost = set(_EXPORTED.findall(str(held.value))) - set(_EXPORTED.findall(text))
    if lost:
        raise Unusable(f"the kernel lacks {', '.join(sorted(lost))}, which the file calls. Give the whole file")
    name = _name(holders[0])
    return _with(base, name, f"{name} = {_raw(text)}")


def _raw(text: str) -> str:
    quotes = '"""' if '"""' not in text else "'''"
    return f"r{quotes}\n{text.strip(chr(10))}\n{quotes}"


def _with(base: str, name: str | None, text: str) -> str:
    """The base with the statement that binds `name` replaced, or the text put in before ModelNew."""
    lines = base.splitlines()
    node = _named(base, name) if name else None
    if node is not None:
        first, last = _span(node)
        return "\n".join([*lines[:first], text, *lines[last:]]) + "\n"
    model = _named(base, "ModelNew")
    first = _span(model)[0] if model is not None else len(lines)
    return "\n".join([*lines[:first], text, "", "", *lines[first:]]) + "\n"


def _with_methods(base: str, part: str, given: ast.ClassDef) -> str:
    for method in given.body:
        if not isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = _text(part, method)
        if elision(text):
            raise Unusable(f"it leaves parts out ({elision(text)!r}). Give the whole file")
        owner = _named(base, given.name)
        assert isinstance(owner, ast.ClassDef)
        lines = base.splitlines()
        old = next((node for node in owner.body if isinstance(node, Definition) and node.name == method.name), None)
        first, last = _span(old) if old is not None else (owner.end_lineno or owner.lineno,) * 2
        base = "\n".join([*lines[:first], *([] if old else [""]), text, *lines[last:]]) + "\n"
    return base


def _is_partial(part: str, node: ast.ClassDef) -> bool:
    methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    return not {"__init__", "forward"} <= methods or elision(_text(part, node)) is not None


def _named(source: str, name: str) -> ast.stmt | None:
    return next((node for node in _parsed(source).body if _name(node) == name), None)


def _name(node: ast.stmt) -> str | None:
    if isinstance(node, Definition):
        return node.name
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return node.target.id
    return None


def _span(node: ast.stmt) -> tuple[int, int]:
    """Its lines, from 0, the last one excluded; decorators are part of it."""
    decorators = node.decorator_list if isinstance(node, Definition) else []
    first = min([node.lineno, *(one.lineno for one in decorators)]) - 1
    return first, node.end_lineno or node.lineno


def _text(source: str, node: ast.stmt) -> str:
    first, last = _span(node)
    return "\n".join(source.splitlines()[first:last])


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError) as error:
        raise Unusable(f"a part of the file does not parse: {error}") from None
