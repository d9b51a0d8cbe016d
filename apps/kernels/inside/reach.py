"""Which elements of its inputs a program can reach at all, and so the bytes that any kernel must move."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node as FxNode

# Read by an index that is itself data: what is read is known only when it runs, and counted as nothing.
BY_INDEX = ("gather", "index", "index_select", "embedding", "take", "take_along_dim")


def compulsory_bytes(program: torch.export.ExportedProgram, output_bytes: int) -> int:
    """Outputs once, and once each element of inputs, parameters and buffers that an operation reads through its views."""
    specs = {spec.arg.name: spec for spec in program.graph_signature.input_specs}
    total = output_bytes
    for node in program.graph.nodes:
        if node.op != "placeholder" or specs[node.name].kind.name == "CONSTANT_TENSOR":
            continue
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and node.users:
            total += elements_reached(node) * value.element_size()
    return total


def elements_reached(node: FxNode) -> int:
    """How many distinct elements of a graph input are read, found by marking them through the views that lead there."""
    value = node.meta["val"]
    if any(not _is_view(user) and not _by_index(user, node) for user in node.users):
        return int(value.numel())
    marks = torch.zeros(tuple(value.shape), dtype=torch.bool)
    _mark(node, marks)
    return int(marks.sum())


def _mark(node: FxNode, marks: torch.Tensor) -> None:
    """Follow a value's uses with a view of the input's marks in the value's own shape."""
    for user in node.users:
        if user.target is operator.getitem or _by_index(user, node):
            continue
        if not _is_view(user):
            _fill(marks)
            continue
        target: Any = user.target
        view = target(marks, *user.args[1:], **user.kwargs)
        if isinstance(view, torch.Tensor):
            _mark(user, view)
            continue
        for part in user.users:  # a split: each of its parts that is taken
            assert part.target is operator.getitem
            _mark(part, view[part.args[1]])


def _fill(marks: torch.Tensor) -> None:
    for axis in reversed(range(marks.dim())):
        if marks.stride(axis) == 0 and marks.size(axis) > 1:
            marks = marks.select(axis, 0)  # an expanded view: one of its copies is all of them
    marks.fill_(True)


def _is_view(node: FxNode) -> bool:
    return bool(getattr(node.target, "is_view", False))


def _by_index(user: FxNode, source: FxNode) -> bool:
    name = getattr(user.target, "_opname", "")
    return name in BY_INDEX and bool(user.args) and user.args[0] is source
