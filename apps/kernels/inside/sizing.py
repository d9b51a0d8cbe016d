"""How large a problem is, found out with tensors that have shapes and no memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from apps.kernels.inside.counting import Counting, tensors_in
from apps.kernels.inside.source import load_module

PROCESSES = 5  # alive at once while judging: oracle, two reference runners, compiled reference, candidate
EXAMINED_COPIES = 12  # of a call's tensors, alive at once while a problem's own checks are tried
RESIDENT = 600 << 20  # torch itself and the comparer, shared between forks as far as it goes


@dataclass(frozen=True)
class Sizes:
    """Bytes of inputs, of parameters and buffers, and of results alive at once in a call; what the call does."""

    input_bytes: int
    state_bytes: int
    peak_bytes: int
    flops: int
    operators: dict[str, int]

    @property
    def judging_bytes(self) -> int:
        """What judging needs: each process holds state, inputs and results; the oracle holds them in float64 too."""
        call = self.input_bytes + self.state_bytes + self.peak_bytes
        return (PROCESSES + 2) * call + 2 * self.input_bytes + RESIDENT

    @property
    def examining_bytes(self) -> int:
        """What trying wrong answers on it needs: sets of inputs, answers in both precisions, what is made of them."""
        return EXAMINED_COPIES * (self.input_bytes + self.state_bytes + self.peak_bytes) + RESIDENT


class NotSized(Exception):
    """The problem can't be run without its values; `input_bytes` is known where its inputs alone could be sized."""

    def __init__(self, why: str, input_bytes: int = 0) -> None:
        super().__init__(why)
        self.input_bytes = input_bytes


def sizes_of(source: str) -> Sizes:
    """Run all of a problem on tensors without memory. Raises `NotSized`."""
    input_bytes = 0
    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            module = load_module("problem", source)
            inputs = module.get_inputs()
            input_bytes = _bytes(inputs)
            init = module.get_init_inputs()
            model = module.Model(**init) if isinstance(init, dict) else module.Model(*init)
            state = _bytes(list(model.state_dict().values()))
            with Counting() as counting:
                model(*inputs)
    except Exception as problem:
        raise NotSized(f"{type(problem).__name__}: {problem}"[:400], input_bytes) from None
    return Sizes(input_bytes, state, counting.peak_bytes, counting.flops, counting.operators)


def _bytes(value: Any) -> int:
    storages = {}
    for tensor in tensors_in(value):
        storage = tensor.untyped_storage()
        storages[storage._cdata] = storage.nbytes()
    return sum(storages.values())
