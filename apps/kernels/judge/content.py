"""What the inputs hold: a bank of drawn sets, and a secret mixture of two of them for each call.

Every element of a mixture was drawn for its own position, so what a problem asks of its inputs by position still
holds. A call's mixture differs from the last call's everywhere, so an old answer, whole or in part, is wrong.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from apps.kernels.judge.memory import Place, SharedMemory, TensorSpec
from apps.kernels.judge.oracle import Oracle

_random = secrets.SystemRandom()


@dataclass(frozen=True)
class Cut:
    """Bytes [start, end) of tensor `tensor` come from the donor."""

    tensor: int
    start: int
    end: int


@dataclass(frozen=True)
class Recipe:
    """One call's inputs: a set of the bank, and the parts that a second set gives. It can be made again at any time."""

    base: int
    donor: int
    cuts: tuple[Cut, ...] = ()


class Contents:
    """Draws the bank and writes recipes into arenas and, for the oracle, into the question's slot."""

    def __init__(self, oracle: Oracle, slots: int) -> None:
        self.oracle = oracle
        self.slots = slots  # slot 0 is the throw-away set of the build phase
        self._last = -1

    def draw_all(self, how: str = "as given") -> None:
        """Fill slots 1 to the last under secret seeds."""
        for slot in range(1, self.slots):
            self.oracle.draw(slot, how)

    def new(self) -> Recipe:
        """A recipe unlike the last one."""
        base = _random.choice([s for s in range(1, self.slots) if s != self._last])
        donor = _random.choice([s for s in range(1, self.slots) if s != base])
        self._last = base
        cuts = tuple(cut for i, spec in enumerate(self.oracle.problem.inputs) for cut in _cuts(i, spec))
        return Recipe(base, donor, cuts)

    def write(self, recipe: Recipe, arena: SharedMemory, places: tuple[Place, ...]) -> None:
        """Put it where a runner will read it."""
        self._write(recipe, arena, [place.at for place in places])

    def ask(self, recipe: Recipe) -> None:
        """Put it where the oracle will read it."""
        self._write(recipe, self.oracle.bank, self.oracle.slot(self.oracle.slots))

    def _write(self, recipe: Recipe, memory: SharedMemory, offsets: list[int]) -> None:
        bank = self.oracle.bank.view
        base, donor = self.oracle.slot(recipe.base), self.oracle.slot(recipe.donor)
        for spec, at, source in zip(self.oracle.problem.inputs, offsets, base, strict=True):
            memory.view[at : at + spec.bytes] = bank[source : source + spec.bytes]
        for cut in recipe.cuts:
            at, source = offsets[cut.tensor], donor[cut.tensor]
            memory.view[at + cut.start : at + cut.end] = bank[source + cut.start : source + cut.end]


def _cuts(index: int, spec: TensorSpec) -> list[Cut]:
    """Whole rows of a contiguous tensor of numbers, in several secret places; together about half of it."""
    if not spec.is_float or not spec.contiguous or not spec.shape or spec.numel < 2:
        return []
    rows = spec.shape[0] if len(spec.shape) > 1 else spec.numel
    row_bytes = spec.bytes // max(1, rows)
    if rows < 2 or row_bytes == 0:
        return []
    count = min(8, rows // 2)
    edges = sorted(_random.sample(range(rows + 1), 2 * count))
    return [Cut(index, edges[2 * i] * row_bytes, edges[2 * i + 1] * row_bytes) for i in range(count)]
