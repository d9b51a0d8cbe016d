"""What one window leaves: its time, and where the outputs of its calls lie in a runner's memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from apps.kernels.judge.memory import TensorSpec

SAMPLE_BYTES = 4096


@dataclass(frozen=True)
class Output:
    """One output tensor in a runner's memory, as the runner describes it."""

    address: int
    spec: TensorSpec
    view: bool = False  # whether the reference's lies in an input's or a parameter's memory, as this may then

    @property
    def end(self) -> int:
        """One past its last byte."""
        return self.address + self.spec.bytes

    def pages(self, spots: Sequence[float]) -> list[tuple[int, int]]:
        """Offset and size of as much as a page at each of these places, 0 (its beginning) to 1; nothing of an empty one."""
        size = min(SAMPLE_BYTES, self.spec.bytes)
        offsets = [int(spot * (self.spec.bytes - size)) for spot in spots] if size else []
        return [(offset - offset % self.spec.item, size) for offset in offsets]


@dataclass(frozen=True)
class Sample:
    """Some bytes of one output of one call, kept for a check that may come later."""

    call: int
    output: int
    offset: int
    data: bytes


@dataclass
class Window:
    """One window: nanoseconds by the judge's clock, the outputs of each call in it, the called thread's processor time."""

    nanoseconds: int
    outputs: list[list[Output]]
    cpu_nanoseconds: int = 0
    samples: list[Sample] = field(default_factory=list)

    @property
    def own(self) -> Iterator[Output]:
        """Those of its outputs that must be new memory."""
        return (output for outputs in self.outputs for output in outputs if not output.view)
