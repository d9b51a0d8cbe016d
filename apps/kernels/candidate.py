"""A candidate's text: whether it is one, what language its kernel is in, and what the static rules say of it.

The rules are tripwires (`apps.kernels.rules`): they name the line and what to do instead. What a candidate does when it
runs is judged from outside.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from apps.kernels.evaluation import Language, Policy, Rejection
from apps.kernels.problem import BadProblem, parse
from apps.kernels.rules import cpp_text, cpp_tricks, python_tricks, reading, torch_compute


class BadCandidate(ValueError):
    """A text that is no candidate (not Python, no ModelNew, no forward); `line` is where, if it is anywhere."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Candidate:
    """A candidate as read: its language, the rules it breaks under the policy asked for, and the library calls it makes."""

    language: Language
    rejections: tuple[Rejection, ...] = ()
    library_calls: tuple[str, ...] = ()
    uses_load_inline: bool = False


def read_candidate(source: str, policy: Policy = Policy.KERNEL) -> Candidate:
    """Read a candidate under a policy. Raises `BadCandidate` for what can't be one."""
    tree = _parsed(source)
    read = reading.read(tree)
    if read.model is None:
        near = " There is a class Model: name it ModelNew." if "Model" in read.classes else ""
        raise BadCandidate(f"There is no class ModelNew. A candidate defines class ModelNew(nn.Module).{near}")
    if not _may_have_forward(read):
        raise BadCandidate("class ModelNew has no forward(self, ...).", read.model.lineno)
    sources = [(line, text) for line, text in reading.texts(tree) if cpp_text.looks_like_cpp(text)]
    uses = torch_compute.torch_uses(read)
    found = [*torch_compute.rejections(uses, policy), *python_tricks.rejections(read, policy)]
    for line, text in sources:
        found += cpp_tricks.rejections(text, line, policy)
    library = [f"{use.name} (line {use.line})" for use in uses if use.library]
    for line, text in sources:
        library += cpp_tricks.library_functions(text, line)
    return Candidate(
        language=_language(tree, read),
        rejections=tuple(sorted(dict.fromkeys(found), key=_line)),
        library_calls=tuple(dict.fromkeys(library)),
        uses_load_inline=any(
            full.endswith(("cpp_extension.load_inline", "cpp_extension")) for full in read.aliases.values()
        )
        or "cpp_extension.load_inline" in source,
    )


def static_rules(source: str, language: Language, policy: Policy) -> tuple[Rejection, ...]:
    """What a candidate's text alone shows; nothing for a text that is no candidate: its build will say so."""
    del language  # rules for Python and C++ apply to every language; more join with the languages that need them
    try:
        return read_candidate(source, policy).rejections
    except BadCandidate:
        return ()


def detect_language(source: str) -> Language:
    """The language a candidate's kernel is written in, as its source shows; `cpp` where it shows none."""
    try:
        tree = _parsed(source)
    except BadCandidate:
        return Language.CPP
    return _language(tree, reading.read(tree))


def _parsed(source: str) -> ast.Module:
    try:
        return without_main_block(parse(source))
    except BadProblem as fault:
        raise BadCandidate(str(fault), fault.line) from None


def without_main_block(tree: ast.Module) -> ast.Module:
    """The tree without what runs only where the file is started by itself, unless it says itself what its name is."""
    spoken = [node for node in ast.walk(tree) if getattr(node, "id", None) == "__name__" or _names_itself(node)]
    if len(spoken) == 1:
        tree.body = [node for node in tree.body if not (isinstance(node, ast.If) and spoken[0] in ast.walk(node.test))]
    return tree


def _names_itself(node: ast.AST) -> bool:
    """Whether it may give the module a name: the name in a string, or everything that has a name."""
    if isinstance(node, ast.Constant):
        return node.value == "__name__"
    return isinstance(node, ast.Name) and node.id in ("globals", "vars", "exec")


def _language(tree: ast.Module, read: reading.Reading) -> Language:
    try:
        return _language_of(tree, read)
    except RecursionError:
        raise BadCandidate("its expressions are nested too deeply to be read") from None


def _language_of(tree: ast.Module, read: reading.Reading) -> Language:
    if any(full.split(".")[0] == "triton" for full in read.aliases.values()):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(one) for one in node.decorator_list):
                return Language.TRITON
    for _, text in reading.texts(tree):
        if cpp_text.looks_like_cpp(text) and re.search(r"\b__global__\b|<<<", cpp_text.without_comments(text)):
            return Language.CUDA
    return Language.CPP


def _may_have_forward(read: reading.Reading) -> bool:
    assert read.model is not None
    seen: set[str] = set()
    waiting = [read.model]
    while waiting:
        current = waiting.pop()
        if "forward" in reading.methods(current) or any(_assigns_forward(node) for node in current.body):
            return True
        for base in current.bases:
            name = read.dotted(base)
            if name in read.classes and name not in seen:
                seen.add(name)
                waiting.append(read.classes[name])
            elif name not in read.classes and name.rpartition(".")[2] != "Module":
                return True
    return False


def _assigns_forward(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "forward" for t in node.targets)


def _line(rejection: Rejection) -> int:
    found = re.match(r"line (\d+)", rejection.where)
    return int(found[1]) if found else 0
