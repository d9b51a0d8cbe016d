"""Where a runner says its outputs lie, held against the problem's layouts and against all other memory that is taken."""

from __future__ import annotations

import itertools
import json
import math
import struct
from collections.abc import Iterable, Sequence

from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.memory import ITEM_BYTES, TensorSpec
from apps.kernels.judge.oracle import OpenProblem
from apps.kernels.judge.reports import believed, forged
from apps.kernels.judge.their_memory import TheirMemory
from apps.kernels.judge.windows import Output, Window
from apps.kernels.plain import Plain

ENTRY = struct.Struct("<QI")  # an output's address, and the number of its layout
Entry = tuple[int, int]


class Outputs:
    """Reads one runner's answers. A layout is described once, with the first output that has it."""

    def __init__(self, problem: OpenProblem) -> None:
        self.problem = problem
        self.buffers: dict[str, int] = {}  # where those lie that the reference updates, once they have moved
        self._layouts: list[Plain] = []

    def entries(self, answer: bytes) -> list[Entry]:
        """The outputs that an answer names, of all calls of a window. Raises `CandidateFailed`."""
        with believed("where its outputs lie"):
            (size,) = struct.unpack_from("<I", answer)
            entries = list(ENTRY.iter_unpack(answer[4 : 4 + size]))
            if len(answer) > 4 + size:
                news = json.loads(answer[4 + size :])
                self._layouts += news["layouts"]
                self.buffers |= {str(name): int(address) for name, address in news["buffers"].items()}
        return entries

    def are_all(self, entries: Sequence[Entry], calls: int) -> bool:
        """Whether there are as many as so many calls of the reference return."""
        return len(entries) == calls * len(self.problem.outputs)

    def of_each_call(self, entries: Sequence[Entry], calls: int) -> list[list[Output]]:
        """The outputs of each call, laid out as the reference's. Raises `CandidateFailed`."""
        expected = self.problem.outputs
        if not self.are_all(entries, calls):
            count = len(entries) / max(1, calls)
            raise CandidateFailed("incorrect", f"it returns {count:g} tensors a call, the reference {len(expected)}")
        with believed("how its outputs are laid out"):
            flat = [self._output(entry, i % len(expected)) for i, entry in enumerate(entries)]
        return [flat[i : i + len(expected)] for i in range(0, len(flat), len(expected))]

    def _output(self, entry: Entry, index: int) -> Output:
        address, number = entry
        expected = self.problem.outputs[index]
        if number >= len(self._layouts):
            raise CandidateFailed("rejected", "it names an output layout it never described", "forged report")
        layout = self._layouts[number]
        if not isinstance(layout, dict) or "dtype" not in layout:
            kind = layout.get("type") if isinstance(layout, dict) else layout
            raise CandidateFailed("incorrect", f"it returns a {kind}, not a plain tensor")
        shape, stride = tuple(layout["shape"]), tuple(layout["stride"])
        if not all(type(number) is int for number in (*shape, *stride)):
            raise forged(f"an output of shape {shape} and strides {stride}")
        if shape != expected.shape:
            raise CandidateFailed("incorrect", f"its output has shape {shape}, the reference's {expected.shape}")
        if layout["dtype"] != expected.dtype:
            raise CandidateFailed("incorrect", f"its output is {layout['dtype']}, the reference's {expected.dtype}")
        if layout.get("device") != "cpu":
            raise CandidateFailed("incorrect", f"its output lies on {layout.get('device')}, the reference's on cpu")
        if len(stride) != len(shape) or any(s < 0 for s in stride):
            raise CandidateFailed("incorrect", f"its output has strides {stride}")
        item = ITEM_BYTES[expected.dtype]
        span = 0 if expected.numel == 0 else item * (1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)))
        if span > 16 * item * expected.numel + (1 << 20):
            raise CandidateFailed("incorrect", f"its output is scattered: strides {stride} for shape {shape}")
        spec = TensorSpec(expected.dtype, shape, stride, span)
        if spec.shares_memory and not expected.shares_memory:
            words = f"its output's elements share memory (strides {stride} for shape {shape}), the reference's don't"
            raise CandidateFailed("incorrect", words)
        return Output(address, spec, view=self.problem.views[index])

    def check_storage(
        self,
        window: Window,
        alive: Iterable[Window],
        inputs: Sequence[tuple[int, int]],
        memory: TheirMemory,
    ) -> None:
        """Outputs are new storage: no input, no output of a window that is still alive, and no later call changes them.

        `inputs` are beginning and end of the memory that inputs lie in. Raises `CandidateFailed`.
        """
        for output in window.own:
            if any(output.address < end and start < output.end for start, end in inputs):
                raise CandidateFailed("incorrect", "it returns its input's own memory, the reference new memory")
        if not self.problem.outputs_share:
            for outputs in window.outputs:
                _refuse_shared([output for output in outputs if not output.view])
        for earlier in alive:
            _refuse_same(earlier, window)
            samples = ((earlier.outputs[kept.call][kept.output], kept) for kept in earlier.samples)
            if any(
                memory.read(output, kept.offset, len(kept.data)) != kept.data
                for output, kept in samples
                if not output.view  # where its input lies, the judge itself writes what comes next
            ):
                raise CandidateFailed("incorrect", "a later call changed an earlier output")


def _refuse_shared(outputs: Sequence[Output]) -> None:
    """The outputs of one call each have memory of their own; they may lie between one another, as parts of one product do."""
    ordered = sorted((output for output in outputs if output.spec.bytes), key=lambda output: output.address)
    for one, other in itertools.combinations(ordered, 2):
        if other.address < one.end and not _lie_between(one, other):
            raise CandidateFailed("incorrect", "two of its outputs share memory, the reference's don't")


def _lie_between(one: Output, other: Output) -> bool:
    """Whether two outputs whose memory overlaps surely have no byte in common: their runs lie apart within a common step."""
    (length, steps), (other_length, other_steps) = _runs(one.spec), _runs(other.spec)
    step = math.gcd(*steps, *other_steps)
    at = (other.address - one.address) % step if step else 0
    return length <= at and at + other_length <= step


def _runs(spec: TensorSpec) -> tuple[int, list[int]]:
    """Bytes of a tensor that lie without a gap, and the steps in bytes from one such run to others."""
    length, steps = spec.item, []
    for stride, size in sorted(
        (stride * spec.item, size) for stride, size in zip(spec.stride, spec.shape, strict=True) if size > 1
    ):
        if stride == length:
            length *= size
        else:
            steps.append(stride)
    return length, steps


def _refuse_same(earlier: Window, window: Window) -> None:
    """No output of a window lies where one of an earlier window lies that is still held."""
    reach = {False: 0, True: 0}  # how far those of the earlier window, and of this one, have come by then
    ranges = [(one.address, one.end, is_new) for is_new, of in ((False, earlier), (True, window)) for one in of.own]
    for start, end, is_new in sorted(ranges):
        if end > start and start < reach[not is_new]:
            raise CandidateFailed(
                "incorrect", "it returns the same memory again while the earlier output is still held"
            )
        reach[is_new] = max(reach[is_new], end)
