"""Outputs that are indices, and what they select from: an argmax may take either of two values that are nearly equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Operators by name: which of their results is an index, and which positional argument is the axis (None: over all).
SELECTING = {
    "argmax": (None, 1), "argmin": (None, 1), "max": (1, 1), "min": (1, 1), "median": (1, 1), "nanmedian": (1, 1),
    "kthvalue": (1, 2), "topk": (1, 2), "sort": (1, 1),
}  # fmt: skip
SEVERAL = ("topk", "sort")  # indices of several elements of a row
# What hands indices on as they are, in the order they have.
KEEPING = (
    "view",
    "_unsafe_view",
    "squeeze",
    "unsqueeze",
    "alias",
    "detach",
    "clone",
    "_to_copy",
    "reshape",
    "lift_fresh",
)


@dataclass(frozen=True)
class Chosen:
    """An index tensor's source: the values selected from, and the axis, None over all of them."""

    source: torch.Tensor
    axis: int | None
    several: bool
    ordered: bool

    def rows(self) -> torch.Tensor:
        """What is selected from as one row for each index, or for each few of them."""
        if self.axis is None or self.source.ndim == 0:
            return self.source.reshape(1, -1)
        return self.source.movedim(self.axis, -1).reshape(-1, self.source.shape[self.axis])


class Selecting(TorchDispatchMode):  # type: ignore[misc]
    """While active, remembers for each tensor of indices what it selects from."""

    def __init__(self) -> None:
        super().__init__()
        self._found: dict[int, tuple[torch.Tensor, Chosen]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to skip it torch would import torch._dynamo at the first operator, which takes a second or two."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        name = func._opname
        if name in SELECTING:
            self._note(name, args, kwargs, result)
        elif name in KEEPING and isinstance(result, torch.Tensor) and args and isinstance(args[0], torch.Tensor):
            known = self.of(args[0])
            same_order = known is not None and (not known.several or result.shape == args[0].shape)
            if known is not None and same_order and not result.is_floating_point():
                self._keep(result, known)
        return result

    def of(self, tensor: torch.Tensor) -> Chosen | None:
        """What a tensor of indices selects from, None for any other."""
        kept = self._found.get(id(tensor))
        return kept[1] if kept is not None and kept[0] is tensor else None

    def _note(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        which, place = SELECTING[name]
        source = args[0] if args else kwargs["self"]
        axis = args[place] if len(args) > place else kwargs.get("dim")
        if isinstance(axis, bool):  # sort.stable takes its axis by name
            axis = kwargs.get("dim")
        if which is None:
            indices = result
        elif isinstance(result, list | tuple) and len(result) > which:
            indices = result[which]
            axis = -1 if axis is None else axis
        else:
            return  # a maximum over everything, or of two tensors
        ordered = name != "topk" or bool(args[4] if len(args) > 4 else kwargs.get("sorted", True))
        self._keep(indices, Chosen(source.detach(), axis, name in SEVERAL, ordered))

    def _keep(self, indices: torch.Tensor, chosen: Chosen) -> None:
        self._found[id(indices)] = (indices, chosen)
