"""The judge's side of the comparer: what lies in a runner's memory against what the oracle said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apps.kernels.inside.draw_names import AS_GIVEN
from apps.kernels.jail import ChannelBroken, ChannelTimeout, Limits, Zygote
from apps.kernels.jail.syscalls import same_bytes
from apps.kernels.judge.content import MixOrder
from apps.kernels.judge.errors import HostCannotJudge
from apps.kernels.judge.memory import (
    ARENA,
    PAGE,
    SharedMemory,
    TensorSpec,
    contiguous_stride,
    freed_on_failure,
    pack,
    up,
)
from apps.kernels.judge.oracle import Answer, Oracle
from apps.kernels.judge.runner import Runner
from apps.kernels.judge.windows import Output, Sample
from apps.kernels.plain import Plain
from apps.kernels.strength import DRIFTING

COMPARE_SECONDS = 120.0


@dataclass(frozen=True)
class Comparison:
    """One call's outputs against the answer. `near` is false where torch's own float32 is far from float64."""

    passed: bool
    near: bool
    error: float | None
    tolerance: float | None
    detail: str
    left_out: int
    worst: int  # the output that decided


@dataclass(frozen=True)
class Copy:
    """A call's outputs as they were copied out of a runner: slot in the raw memory, and their layouts."""

    slot: int
    specs: tuple[TensorSpec, ...]


class Comparer:
    """A jailed process that runs nothing foreign, and the raw memory it reads."""

    def __init__(self, zygote: Zygote, oracle: Oracle, limits: Limits, threads: int, mixers: int) -> None:
        self.oracle = oracle
        self.raw = SharedMemory("raw", 0)
        self._lent = SharedMemory(ARENA, 0)
        self._sealed = False
        files = (oracle.expect.fd, self.raw.fd, oracle.bank.fd, self._lent.fd)
        with freed_on_failure(self.raw, self._lent):
            self.jailed = zygote.spawn(
                "apps.kernels.inside.comparer:main", {"threads": threads, "mixers": mixers}, limits=limits, files=files
            )
        self._slots: list[tuple[list[int], int]] = []
        self._end = 0

    def copy(self, slot: int, runner: Runner, outputs: list[Output]) -> Copy:
        """Copy all of a call's outputs out of a frozen runner."""
        specs = tuple(output.spec for output in outputs)
        offsets = self._room(slot, [spec.bytes for spec in specs])
        for output, at in zip(outputs, offsets, strict=True):
            runner.memory.read_into(self.raw, at, output.address, output.spec.bytes)
        return Copy(slot, specs)

    def same(self, one: Copy, other: Copy) -> bool:
        """Whether two copies hold the same bytes in the same layout: then what was found of one holds for the other."""
        places = zip(one.specs, self._slots[one.slot][0], self._slots[other.slot][0], strict=True)
        return one.specs == other.specs and all(
            same_bytes(self.raw.pointer(a), self.raw.pointer(b), spec.bytes) for spec, a, b in places
        )

    def overlay(self, slot: int, answer: Answer, samples: list[Sample]) -> Copy:
        """Torch's own answer with a call's kept samples laid over it: only they can then be wrong."""
        expected = self.oracle.problem.outputs
        specs = tuple(TensorSpec(s.dtype, s.shape, contiguous_stride(s.shape), s.numel * s.item) for s in expected)
        offsets = self._room(slot, [spec.bytes for spec in specs])
        for spec, at, own in zip(specs, offsets, answer.own, strict=True):
            self.raw.view[at : at + spec.bytes] = self.oracle.expect.view[own : own + spec.bytes]
        for sample in samples:
            at = offsets[sample.output] + sample.offset
            self.raw.view[at : at + len(sample.data)] = sample.data
        return Copy(slot, specs)

    def compare(self, copy: Copy, answer: Answer, how: str = AS_GIVEN, *, overlaid: bool = False) -> Comparison:
        """Hold a copy against an answer; `how` names the distribution of the inputs. What was `overlaid` is partly torch's."""
        offsets, _ = self._slots[copy.slot]
        hints = answer.hints or [{}] * len(copy.specs)
        problem = self.oracle.problem
        rows = zip(copy.specs, offsets, answer.exact, answer.own, problem.reductions, hints, strict=True)
        outputs = [
            {**spec.plain(), **hint, "got": at, "exact": e, "own": o, "reduction": terms}
            for spec, at, e, o, terms, hint in rows
        ]
        said = self._ask({"outputs": outputs, "near": problem.near, "drifts": how in DRIFTING, "overlaid": overlaid})
        return _summary(said["outputs"])

    def mix(self, orders: Sequence[MixOrder]) -> None:
        """Write mixtures of two sets of inputs each into the bank, or into the arena that was lent."""
        specs = [[spec.bytes, spec.dtype] for spec in self.oracle.problem.inputs]
        plain = [[list(o.base), list(o.donor), list(o.into), o.seed, o.alike, o.lent] for o in orders]
        self._ask({"mix": plain, "specs": specs})

    def lend(self, size: int) -> SharedMemory | None:
        """Memory for an arena of `size` bytes into which this process mixes inputs itself; whoever else gets it can only read.

        There is one: None where another size was asked for before.
        """
        if not self._sealed:
            self._lent.grow(size)
            self._ask({"hold": True})  # what it has mapped before stays writable
            self._lent.seal()
            self._sealed = True
        return self._lent if self._lent.size == up(size, PAGE) else None

    def has_lent(self, memory: SharedMemory) -> bool:
        """Whether `mix` may write into it."""
        return self._sealed and memory is self._lent

    def close(self) -> None:
        """End it and free its memory."""
        self.jailed.close()
        self.raw.close()
        self._lent.close()

    def _room(self, slot: int, sizes: list[int]) -> list[int]:
        """Offsets for a slot's outputs; a slot whose outputs don't fit any more gets new room."""
        while len(self._slots) <= slot:
            self._slots.append(([], 0))
        offsets, room = self._slots[slot]
        packed, size = pack(sizes)
        if size > room or not offsets:
            start = self._end
            self._end += size
            self.raw.grow(self._end)
            offsets = [start + at for at in packed]
            self._slots[slot] = (offsets, size)
            return offsets
        offsets = [offsets[0] + at for at in packed]
        self._slots[slot] = (offsets, room)
        return offsets

    def _ask(self, message: Plain) -> dict[str, Plain]:
        try:
            return self.jailed.ask(message, COMPARE_SECONDS)
        except (ChannelBroken, ChannelTimeout):
            ended = self.jailed.wait(5)
            raise HostCannotJudge(
                f"the judge's own array work failed: it {ended.words}\n{self.jailed.output[-800:]}"
            ) from None


def _summary(outputs: list[Plain]) -> Comparison:
    def badness(item: Plain) -> float:
        if not item["passed"]:
            return float("inf")
        return float(item["error"] or 0.0) / float(item["tolerance"] or 1.0)

    worst = max(range(len(outputs)), key=lambda i: badness(outputs[i]))
    item = outputs[worst]
    return Comparison(
        passed=all(o["passed"] for o in outputs),
        near=all(o["near"] for o in outputs),
        error=item["error"],
        tolerance=item["tolerance"],
        detail=str(item.get("detail", "")),
        left_out=sum(int(o.get("left_out", 0)) for o in outputs),
        worst=worst,
    )
