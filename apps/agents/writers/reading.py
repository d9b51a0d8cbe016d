"""A candidate out of what a model said: in fences or without, among prose, in pieces, as a part of a file, as a diff."""

from __future__ import annotations

import ast
import builtins
import re
from dataclasses import dataclass

from apps.agents.writers import diffs, merging
from apps.agents.writers.unusable import Unusable

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_FENCE = re.compile(r"^[ \t]{0,3}(```+|~~~+)[ \t]*([\w+#.-]*)[^\n`]*$", re.MULTILINE)
_PYTHON, _CPP, _DIFF = ("python", "py", "python3"), ("cpp", "c++", "c", "cc", "cxx", "cuda", "cu"), ("diff", "patch")
_CODE_BEGINS = re.compile(r"^(import |from \w|[\"']{3}|class |@)", re.MULTILINE)
_PLAN = re.compile(r"^\W*plan\W*:\W*(.+)$", re.IGNORECASE | re.MULTILINE)
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_LONGEST_SUMMARY = 300
LONGEST = 400_000  # characters; no kernel is that long, a model that repeats itself is


@dataclass(frozen=True)
class Block:
    """A piece of an answer: the word after its fence, its text, and whether the fence was closed."""

    info: str
    text: str
    closed: bool = True


def candidate_in(answer: str, base: str | None = None) -> str:
    """The candidate's whole source. Raises `Unusable`, which says what is wrong for the model to mend it.

    `base` is the version that parts of a file and diffs are about.
    """
    text = _THOUGHT.sub("", answer)
    found = blocks(text) or _without_fences(text)
    if not found:
        raise Unusable("it holds no code. Give the whole file in one fenced Python block")
    ways = (_patched, _whole, _joined, _completed, _merged)
    reasons: list[str] = []
    for way in ways:
        try:
            source = way(found, base)
            if source is not None:
                return checked(source)
        except Unusable as unusable:
            reasons.append(str(unusable))
    raise Unusable(reasons[0] if reasons else "no block defines `class ModelNew(nn.Module)` with a `forward`")


def checked(source: str) -> str:
    """The source, if it can be a candidate at all. Raises `Unusable`."""
    source = source.strip("\n") + "\n"
    if len(source) > LONGEST:
        raise Unusable(f"it is {len(source)} characters long, and at most {LONGEST} are taken")
    tree = _parsed(source)
    model = _model(tree)
    if model is None:
        raise Unusable("no block defines `class ModelNew(nn.Module)`")
    if not any(isinstance(node, ast.FunctionDef) and node.name == "forward" for node in model.body):
        raise Unusable("`ModelNew` has no `forward`")
    if left_out := merging.elision(source):
        raise Unusable(f"it leaves parts out ({left_out!r}). Give the whole file")
    if unknown := undefined(tree):
        raise Unusable(f"it uses {', '.join(f'`{name}`' for name in unknown[:5])}, which it defines nowhere")
    return source


def summary_of(answer: str) -> str:
    """What a model says of its candidate in a line: after `Plan:`, else its first words outside of code."""
    text = _THOUGHT.sub("", answer)
    plan = _PLAN.search(text)
    if plan:
        return _one_line(plan.group(1))
    before = _FENCE.split(text, maxsplit=1)[0]
    line = next((line for line in before.splitlines() if line.strip() and not _CODE_BEGINS.match(line)), "")
    return _one_line(line) or "A candidate without a word about it."


def blocks(text: str) -> list[Block]:
    """Fenced blocks in order. One that is never closed reaches to the end."""
    found, at = [], 0
    while (opening := _FENCE.search(text, at)) is not None:
        mark, info = opening.group(1), opening.group(2).lower()
        closing = re.compile(rf"^[ \t]{{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.MULTILINE)
        end = closing.search(text, opening.end())
        body = text[opening.end() + 1 : end.start() if end else len(text)]
        found.append(Block(info, body, end is not None))
        at = end.end() if end else len(text)
    return [block for block in found if block.text.strip()]


def undefined(tree: ast.Module) -> list[str]:
    """Names that are used and bound nowhere in the file, in order of use. Scopes are not told apart: no false alarms."""
    bound, used = set(dir(builtins)) | {"__file__", "__name__", "__class__"}, dict[str, None]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Load):
                used[node.id] = None
            else:
                bound.add(node.id)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            if node.name == "*":
                return []
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            bound.add(node.name)
    return [name for name in used if name not in bound]


# --- the ways, most literal first -------------------------------------------------------------------------------


def _patched(found: list[Block], base: str | None) -> str | None:
    """Diffs, applied to the base."""
    patches = [block.text for block in found if block.info in _DIFF or diffs.is_diff(block.text)]
    if not patches:
        return None
    if base is None:
        raise Unusable("it is a diff, and there is no version yet that it could be applied to. Give the whole file")
    return diffs.applied(base, "\n".join(patches))


def _whole(found: list[Block], base: str | None) -> str | None:
    """The last block that is a candidate by itself: models think aloud and correct themselves."""
    first: Unusable | None = None
    for block in reversed(_python(found)):
        if "ModelNew" not in block.text:
            continue
        try:
            return checked(block.text)
        except Unusable as unusable:
            cut = "" if block.closed else "the answer ends in the middle of the code: "
            first = first or Unusable(f"{cut}{unusable}")
    if first is not None:
        raise first
    return None


def _joined(found: list[Block], base: str | None) -> str | None:
    """A file that was given in several blocks."""
    pieces = _python(found)
    return checked("\n".join(block.text.strip("\n") for block in pieces)) if len(pieces) > 1 else None


def _completed(found: list[Block], base: str | None) -> str | None:
    """A Python block that leaves its kernel's text to a C++ block beside it."""
    kernels = [block for block in found if block.info in _CPP]
    pieces = _python(found)
    if len(kernels) != 1 or not pieces:
        return None
    source = "\n".join(block.text.strip("\n") for block in pieces)
    missing = undefined(_parsed(source))
    if len(missing) != 1:
        return None
    return checked(merging.with_text(source, missing[0], kernels[0].text))


def _merged(found: list[Block], base: str | None) -> str | None:
    """Parts of a file, put in the place of the same parts of the base."""
    if base is None or not all(block.closed for block in found):
        return None
    source = base
    for block in found:
        if block.info in _CPP:
            source = merging.with_kernel(source, block.text)
        elif block in _python([block]):
            source = merging.merged(source, block.text)
    return checked(source) if source != base else None


def _python(found: list[Block]) -> list[Block]:
    return [block for block in found if block.info in _PYTHON or (not block.info and _CODE_BEGINS.search(block.text))]


def _without_fences(text: str) -> list[Block]:
    """Code that came bare: a diff, or all from its first line on, without what follows it in prose."""
    if diffs.is_diff(text):
        return [Block("diff", text)]
    begin = _CODE_BEGINS.search(text)
    if begin is None or "ModelNew" not in text:
        return []
    lines = text[begin.start() :].splitlines()
    for end in range(len(lines), max(0, len(lines) - 40), -1):
        source = "\n".join(lines[:end])
        try:
            ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        return [Block("python", source)]
    return [Block("python", "\n".join(lines), closed=False)]


def _parsed(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        line = (error.text or "").strip()
        shown = f" at {line[:80]!r}" if line else ""
        raise Unusable(f"the Python does not parse: {error.msg} in line {error.lineno}{shown}") from None
    except (ValueError, RecursionError, MemoryError):
        raise Unusable("the Python can't be read") from None


def _model(tree: ast.Module) -> ast.ClassDef | None:
    return next((node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "ModelNew"), None)


def _one_line(text: str) -> str:
    line = " ".join(_BOLD.sub(r"\1", text.replace("`", "")).split())
    return line if len(line) <= _LONGEST_SUMMARY else f"{line[:_LONGEST_SUMMARY]} ..."
