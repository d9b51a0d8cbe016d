"""Torch's own compilers, closed to candidates: a kernel they write is not the candidate's, whatever name it was asked by."""

from __future__ import annotations

import sys
from collections.abc import MutableSequence, Sequence
from types import ModuleType
from typing import Any

import torch

CLOSED = ("torch._dynamo", "torch._inductor", "torch._export")
DYNAMO = CLOSED[0]
RULE = "torch compiles"
MARKERS = ("disable", "allow_in_graph", "assume_constant_result")  # only mark functions for a compiler that never comes


class TorchCompiles(ImportError):
    """A candidate asked for one of torch's compilers."""


def close() -> None:
    """Close them in this process, those that were imported before it was forked too."""
    loaded = DYNAMO in sys.modules
    for name in [name for name in sys.modules if _is_closed(name)]:
        del sys.modules[name]
    for name in CLOSED:
        torch.__dict__.pop(name.rpartition(".")[2], None)
    if loaded:
        sys.modules[DYNAMO] = torch._dynamo = _WhatIsLeft(DYNAMO)
    for name in MARKERS:
        setattr(torch.compiler, name, _unchanged)
    sys.meta_path.insert(0, _Closed())


def rule_of(problem: BaseException) -> str | None:
    """The rule that a candidate's error shows to be broken, if any."""
    seen: set[int] = set()
    while id(problem) not in seen:
        if isinstance(problem, TorchCompiles):
            return RULE
        seen.add(id(problem))
        problem = problem.__cause__ or problem.__context__ or problem
    return None


def _unchanged(function: Any = None, *_: Any, **__: Any) -> Any:
    """What a marker makes of a function: nothing. Called without one it gives itself, to be a decorator."""
    return _unchanged if function is None else function


def _words(name: str) -> str:
    return f"{name} is closed to candidates: the kernel must be the candidate's own, not torch's compiler's"


def _is_closed(name: str) -> bool:
    return any(name == closed or name.startswith(f"{closed}.") for closed in CLOSED)


class _WhatIsLeft(ModuleType):
    """Where torch's compiler was loaded it has wrapped functions such as `torch.manual_seed`; they go on asking it for this."""

    __path__: MutableSequence[str] = []  # noqa: RUF012 - so that what lies below it is looked for, and found closed
    disable = staticmethod(_unchanged)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise TorchCompiles(_words(f"{self.__name__}.{name}"))


class _Closed:
    """The first of the finders: it finds none of them, and says why."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Nothing; raises `TorchCompiles` for what is closed."""
        if _is_closed(name):
            raise TorchCompiles(_words(name))
