"""What the inputs hold: a bank of drawn sets, and a secret mixture of two of them for each call.

Every element of a mixture was drawn for its own position, so what a problem asks of its inputs by position still
holds; which of two sets gives it is decided element by element, under a secret seed, and the lower bits of floats are
thinned. No row of one call is a row of another, and hardly an element one that was there before, so an answer kept from
before, whole, by rows or by elements, is wrong. Where a problem takes no mixtures, each call's inputs are drawn anew.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from apps.kernels.inside.draw_names import AS_GIVEN
from apps.kernels.judge.memory import Place, SharedMemory
from apps.kernels.judge.oracle import Oracle

_random = secrets.SystemRandom()


class Mixer(Protocol):
    """Whoever does the mixing: array work, so not the judge itself."""

    def mix(self, orders: Sequence[MixOrder]) -> None:
        """Write each mixture to its place in the bank, or in the arena it has lent."""

    def has_lent(self, memory: SharedMemory) -> bool:
        """Whether it may mix straight into this memory."""


@dataclass(frozen=True)
class Recipe:
    """One call's inputs: a set of the bank, and a seed that says where another set's elements take its elements' place.

    It can be made again at any time. Without a seed it is the base set alone. `alike` takes few elements of the donor, and
    none of a tensor's first and last ones: to anyone who looks at a few elements it is the base set again. `drawn` is no
    mixture but a set drawn under the seed.
    """

    base: int
    donor: int
    seed: int | None = None
    alike: bool = False
    drawn: bool = False


@dataclass(frozen=True)
class MixOrder:
    """One mixture: offsets of both sets' tensors in the bank, and of where the result goes."""

    base: tuple[int, ...]
    donor: tuple[int, ...]
    into: tuple[int, ...]
    seed: int
    alike: bool = False
    lent: bool = False  # the result goes into the arena that the mixer has lent


class Contents:
    """Draws the bank, mixes, and writes what was mixed into arenas and, for the oracle, into the question's slot."""

    def __init__(self, oracle: Oracle, mixer: Mixer, slots: int) -> None:
        self.oracle = oracle
        self.mixer = mixer
        self.slots = slots  # slot 0 is the throw-away set of the build phase
        self.mixing = True
        self._last = -1
        self._timed = AS_GIVEN  # the distribution of the last slot
        self._staged: dict[Recipe, int] = {}

    def draw_all(self, last: str = AS_GIVEN) -> None:
        """Fill slots 1 to the last under secret seeds, that one from a distribution of its own, and see whether mixtures of
        them can be judged.
        """
        for slot in range(1, self.slots):
            self.oracle.draw(slot)
        self._staged.clear()
        self.mixing = self._can_be_mixed(2)
        self._timed = AS_GIVEN
        if self.mixing and last != AS_GIVEN:
            self.oracle.draw(self.slots - 1, last)
            if self._can_be_mixed(self.slots - 1):
                self._timed = last
            else:
                self.oracle.draw(self.slots - 1)

    def new(self) -> Recipe:
        """A recipe unlike the last one."""
        if not self.mixing:
            return Recipe(0, 0, secrets.randbits(48), drawn=True)
        base = _random.choice([s for s in range(1, self.slots) if s != self._last])
        donor = _random.choice([s for s in range(1, self.slots) if s != base])
        self._last = base
        return Recipe(base, donor, secrets.randbits(48))

    def how(self, recipe: Recipe) -> str:
        """The distribution of what it takes, if a part only, that is not as given."""
        return self._timed if not recipe.drawn and self.slots - 1 in (recipe.base, recipe.donor) else AS_GIVEN

    def stage(self, recipes: Sequence[Recipe]) -> None:
        """Mix or draw these now, at once; they stay until others are staged."""
        wanted = [recipe for recipe in recipes if recipe.seed is not None]
        first = self.oracle.slots + 1
        self.oracle.bank.grow((first + len(wanted)) * self.oracle.slot_bytes)
        self._staged = {recipe: first + i for i, recipe in enumerate(wanted)}
        orders = [
            self._order(recipe, self.oracle.slot(slot)) for recipe, slot in self._staged.items() if not recipe.drawn
        ]
        if orders:
            self.mixer.mix(orders)
        for recipe, slot in self._staged.items():
            if recipe.drawn:
                self.oracle.draw(slot, AS_GIVEN, recipe.seed)

    def _order(self, recipe: Recipe, into: Sequence[int], *, lent: bool = False) -> MixOrder:
        base, donor = self.oracle.slot(recipe.base), self.oracle.slot(recipe.donor)
        return MixOrder(tuple(base), tuple(donor), tuple(into), recipe.seed or 0, recipe.alike, lent)

    def lay(self, recipes: Sequence[Recipe], arena: SharedMemory, rows: Sequence[tuple[Place, ...]]) -> None:
        """Mix or draw these and put each where runners will read it, without a copy where the mixer has lent the arena."""
        if self.mixer.has_lent(arena) and all(recipe.seed is not None and not recipe.drawn for recipe in recipes):
            ordered = zip(recipes, rows, strict=True)
            self.mixer.mix([self._order(recipe, [place.at for place in row], lent=True) for recipe, row in ordered])
            return
        self.stage(recipes)
        for recipe, row in zip(recipes, rows, strict=True):
            self.write(recipe, arena, row)

    def write(self, recipe: Recipe, arena: SharedMemory, places: tuple[Place, ...]) -> None:
        """Put it where a runner will read it."""
        self._copy(recipe, arena, [place.at for place in places])

    def ask(self, recipe: Recipe) -> None:
        """Put it where the oracle will read it."""
        self._copy(recipe, self.oracle.bank, self.oracle.slot(self.oracle.slots))

    def _copy(self, recipe: Recipe, memory: SharedMemory, offsets: list[int]) -> None:
        if recipe.seed is not None and recipe not in self._staged:
            self.stage([recipe])
        source = self.oracle.slot(recipe.base if recipe.seed is None else self._staged[recipe])
        bank = self.oracle.bank.view
        for spec, at, start in zip(self.oracle.problem.inputs, offsets, source, strict=True):
            memory.view[at : at + spec.bytes] = bank[start : start + spec.bytes]

    def _can_be_mixed(self, donor: int) -> bool:
        """Whether the reference takes a mixture as it takes a set as drawn (a matrix to invert may not let itself)."""
        self.ask(Recipe(1, 1))
        drawn = self.oracle.try_answer()
        self.ask(Recipe(1, donor, secrets.randbits(48)))
        mixed = self.oracle.try_answer()
        return mixed is not None and (mixed.finite or drawn is None or not drawn.finite)
