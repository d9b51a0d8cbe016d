"""Other sizes of a problem, to see whether a kernel fits one size alone: what its constants may become."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from apps.kernels.facts import Constant
from apps.kernels.problem import ProblemSource

Choice = dict[str, int]
TINY = (3, 5, 7)  # below any vector's width, and no two neighbours alike: rows taken for columns show
SMALLEST_LAYER = 8  # a smaller constant that no input is made with is a window, a step or a number of groups
SINGLE = 2  # constants that are changed alone where the reference does not take all of them changed


@dataclass(frozen=True)
class OtherSizes:
    """One kind of other sizes: choices of constants, of which the first that the reference takes is tried."""

    kind: str
    choices: tuple[Choice, ...]


def other_sizes(problem: ProblemSource) -> tuple[OtherSizes, ...]:
    """What to try, cheap first: tiny, about half and odd, one larger. Empty where no constant sizes the inputs."""
    inputs, layers = _sizes(problem)
    if not inputs:
        return ()
    largest = sorted(inputs, key=lambda constant: -int(constant.value))[:SINGLE]
    tiny = {c.name: min(int(c.value), TINY[i % len(TINY)]) for i, c in enumerate([*inputs, *layers])}
    odd = {c.name: _about_half(int(c.value)) for c in [*inputs, *layers]}
    larger = [{c.name: (int(c.value) + max(2, int(c.value) // 4)) | 1} for c in largest]
    kinds = (
        OtherSizes("tiny", tuple(_gentler(tiny, inputs, largest))),
        OtherSizes("odd", tuple(_gentler(odd, inputs, largest))),
        OtherSizes("larger", tuple(larger)),
    )
    now = {constant.name: constant.value for constant in problem.constants}
    return tuple(
        OtherSizes(one.kind, tuple(c for c in one.choices if any(now[name] != value for name, value in c.items())))
        for one in kinds
    )


def _sizes(problem: ProblemSource) -> tuple[list[Constant], list[Constant]]:
    """Whole-number constants that get_inputs is written with, and larger ones that only the model is built with."""
    numbers = [c for c in problem.constants if type(c.value) is int and c.value > 1]
    tree = ast.parse(problem.source)
    used, built = _used_by(tree, "get_inputs"), _used_by(tree, "get_init_inputs")
    inputs = [c for c in numbers if c.name in used]
    return inputs, [c for c in numbers if c.name in built - used and int(c.value) >= SMALLEST_LAYER]


def _used_by(tree: ast.Module, function: str) -> set[str]:
    """Names that a function mentions, and those that the module's assignments to them mention in turn."""
    assigned = {
        target.id: _names(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    waiting = [
        name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == function
        for name in _names(node)
    ]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(assigned.get(name, ()))
    return found


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _about_half(value: int) -> int:
    return max(1, (value // 2 - 1) | 1)


def _gentler(wanted: Choice, inputs: list[Constant], largest: list[Constant]) -> Iterator[Choice]:
    """All constants at once, those of the inputs alone, then the largest ones one by one."""
    yield wanted
    alone = {constant.name: wanted[constant.name] for constant in inputs}
    if alone != wanted:
        yield alone
    if len(alone) > 1:
        for constant in largest:
            yield {constant.name: wanted[constant.name]}
