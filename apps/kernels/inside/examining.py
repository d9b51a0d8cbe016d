"""A problem is tested before its candidates are: mutants and lower precisions against its own checks.

What the quick checks let pass is tried on stronger inputs; those that catch something join the checks, and what even they
let pass makes the problem weak, or its precision not provable. Runs where the problem runs: whoever wrote the problem could
only deceive themselves.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from apps.kernels.inside import answering, counting, depending, draws, outputs, values
from apps.kernels.inside.answering import Answered
from apps.kernels.inside.draw_names import AS_GIVEN, INTEGERS
from apps.kernels.inside.mutants import Mutant, Outputs, mutants
from apps.kernels.inside.screening import CHUNK
from apps.kernels.plain import Plain, to_plain
from apps.kernels.strength import ALIKE, DRIFTING, EXTREME, FULL, QUICK, STRONGER, TIMED, Strength

if TYPE_CHECKING:
    from apps.kernels.inside.oracle import Oracle

SEED = 6_180_339
SECTIONS = 64  # neighbourhoods of a large output that a mutant is tried on first
JUMP_NUDGE = 2.0**-11  # a change of the inputs by this much shows whether there is any discontinuity
JUMP_HEIGHT = 2.0**-5  # and this is what a continuous function does not make of it
WEIGHTS_SEED = 41
LARGE = 1 << 20  # elements of outputs, of which some will jump if any do


@dataclass
class Case:
    """One set of inputs of a distribution with its answers."""

    oracle: Oracle
    how: str
    seed: int
    tensors: list[torch.Tensor]
    answered: Answered
    counted: bool = True
    left_out: float = 0.0

    @property
    def own(self) -> Outputs:
        """Torch's own answer."""
        return self.answered.own

    @functools.cached_property
    def others(self) -> list[torch.Tensor]:
        """Another set of inputs of the same distribution."""
        return self.oracle.drawn(SEED + 1, self.how)

    @functools.cached_property
    def other_answer(self) -> Outputs:
        """Torch's own answer to them."""
        inputs = values.decode(self.oracle.tree, self.others)
        found = values.tensors_of(self.oracle.forward(self.oracle.seed, inputs))
        self.oracle.restore()
        return found


@dataclass
class _Integers:
    """What was found by other integers: whether they tell anything, inputs that nothing depends on, and what passes all."""

    tell: bool = False
    unused: set[int] = field(default_factory=set)
    weak: list[str] = field(default_factory=list)


def examine(oracle: Oracle, seconds: float) -> Plain:
    """`Strength` as plain data. Takes about `seconds` at most; what was not reached is said."""
    return to_plain(_Examination(oracle, seconds).run())


class _Examination:
    def __init__(self, oracle: Oracle, seconds: float) -> None:
        self.oracle = oracle
        self.started = time.monotonic()
        self.deadline = self.started + seconds
        self.jumps = False
        self.counted: list[str] = []
        self.uncounted: list[str] = []
        self.left_out = 0.0
        self.alike = ALIKE[0]
        self.suspicious: set[str] = set()  # mutants that were seen to differ from the right answer
        self.complete = True

    def run(self) -> Strength:
        """All of it."""
        first = self._first()
        everyone = list(mutants(self.oracle, first))
        alive = [mutant for mutant in everyone if mutant.takes_as_given is None]
        stale = self._stale(first)
        for how in QUICK:
            if not alive:
                break  # all of them are caught already, whatever the rest would show
            alive = self._survivors(first if how == AS_GIVEN else self._case(how), alive)
        for how in QUICK:
            if time.monotonic() < self.deadline:  # needed to catch anything or not: jumps may show there alone
                self._can_be_judged_at(how)
        quiet = [mutant for mutant in alive if mutant.name not in self.suspicious]
        unused = {mutant.ignores for mutant in quiet if mutant.ignores is not None}
        alive = [mutant for mutant in alive if not mutant.derived or mutant.name in self.suspicious]
        stronger: list[str] = []
        for how in STRONGER:
            if not alive or self._late():
                break
            left = self._survivors(self._case(how), alive)
            if len(left) < len(alive):
                stronger.append(how)
            alive = left
        integers = self._integers([mutant for mutant in everyone if mutant.takes_as_given is not None])
        if integers.tell:
            stronger.append(INTEGERS)
        unused = {index for index in unused if first.tensors[index].is_floating_point()} | integers.unused
        timed = next((how for how in TIMED if self._can_be_judged_at(how)), AS_GIVEN)
        weights = self._weights_are_seen(first)
        shares, flops = self._depends(first), self._flops(first)
        alive = alive if self.complete else []  # of what was not tried to the end nothing is said
        weak = [self._reason(mutant) for mutant in alive if mutant.level is None]
        return Strength(
            quick=(*QUICK, *stronger),
            full=(*FULL[: -len(EXTREME)], *(how for how in stronger if how not in FULL), *EXTREME),
            tried=tuple(mutant.name for mutant in everyone),
            weak=(*weak, *integers.weak, *stale, *weights, *self._too_many_jumps()),
            imprecise=tuple(mutant.name for mutant in alive if mutant.level is not None),
            uncounted=tuple(self.uncounted),
            counted=tuple(self.counted),
            left_out=self.left_out,
            jumps=self.jumps,
            alike=self.alike,
            timed=timed,
            unused=tuple(sorted(unused)) if self.complete else (),
            dependence=shares,
            flops=flops,
            complete=self.complete,
            seconds=round(time.monotonic() - self.started, 3),
        )

    def _late(self) -> bool:
        if time.monotonic() < self.deadline:
            return False
        self.complete = False
        return True

    def _first(self) -> Case:
        """The problem's own inputs, with what jumps left out if anything does."""
        case = self._case(AS_GIVEN, look=False)
        assert case is not None  # the problem was opened with them
        self.jumps = self._has_jumps(case)
        if self.jumps:
            case.answered = answering.answer(self.oracle, case.tensors, jumps=True)
        self._look_at(case)
        return case

    # -- cases -------------------------------------------------------------------------------------------------------

    def _case(self, how: str, *, look: bool = True) -> Case | None:
        """Inputs of a distribution and their answers; None where the reference can't take them or time is up."""
        if how != AS_GIVEN and self._late():
            return None
        try:
            tensors = self.oracle.drawn(SEED, how)
            answered = answering.answer(self.oracle, tensors, jumps=self.jumps)
        except Exception:
            if how == AS_GIVEN:
                raise
            self.uncounted.append(how)
            return None
        finally:
            self.oracle.restore()
        case = Case(self.oracle, how, SEED, tensors, answered)
        if look:
            self._look_at(case)
        if look and case.counted and case.left_out and not self.jumps:
            self.jumps = True  # torch's own answer is another one in places: ties that inputs as given have not
            case.answered = answering.answer(self.oracle, tensors, jumps=True)
            self.oracle.restore()
        return case

    def _look_at(self, case: Case) -> None:
        """Whether the case can be judged by: torch's own answer, held against the exact one as a candidate's would be."""
        rows = [self._judge(case, index, own) for index, own in enumerate(case.own)]
        finite = [torch.isfinite(t) for t in case.answered.exact if t.is_floating_point() and t.numel()]
        whole, some = all(bool(t.all()) for t in finite), any(bool(t.any()) for t in finite)
        case.counted = all(row["near"] for row in rows) and (whole or (some and all(row["passed"] for row in rows)))
        case.left_out = max((float(row.get("share", 0.0)) for row in rows), default=0.0)
        (self.counted if case.counted else self.uncounted).append(case.how)
        if case.counted:
            self.left_out = max(self.left_out, case.left_out)

    def _judge(self, case: Case, index: int, got: torch.Tensor) -> Plain:
        found = case.answered
        return outputs.judge(
            found.exact[index],
            found.own[index],
            got,
            self.oracle.reductions[index],
            near=self.oracle.near,
            drifts=case.how in DRIFTING,
            jumps=found.jumps[index],
            scores=found.scores[index],
        )

    # -- mutants -----------------------------------------------------------------------------------------------------

    def _survivors(self, case: Case | None, alive: Sequence[Mutant]) -> list[Mutant]:
        """Those that pass on this case too; all of them where it does not count."""
        if case is None or not case.counted:
            return list(alive)
        return [mutant for mutant in alive if self._passes(case, mutant)]

    def _passes(self, case: Case, mutant: Mutant) -> bool:
        if self._late():
            return True
        try:
            made = mutant.make(case)
        except Exception:
            made = None
        if made is None:
            return False  # it can't be made here, so nobody can hand it in
        if mutant.derived and self._equal(case, made):
            return True
        self.suspicious.add(mutant.name)
        return self._right(case, made)

    def _right(self, case: Case, made: Outputs) -> bool:
        """Whether the checks take these outputs for right. Few places first: most are wrong everywhere."""
        if any(a.shape != b.shape or a.dtype != b.dtype for a, b in zip(made, case.own, strict=True)):
            return False
        for thin in (True, False):
            for index, got in enumerate(made):
                part = _sections(case, index, got) if thin else (case, index, got)
                if part is not None and not self._judge(*part)["passed"]:
                    return False
        return True

    @staticmethod
    def _equal(case: Case, made: Outputs) -> bool:
        return all(torch.equal(a, b) for a, b in zip(made, case.own, strict=True))

    def _integers(self, takers: list[Mutant]) -> _Integers:
        """What other integers and booleans than those given show. Some problems give the same ones each time."""
        found = _Integers()
        case = self._case(INTEGERS) if takers else None
        if case is None or not case.counted:
            found.weak += [self._reason(mutant) for mutant in takers]
            return found
        given = self.oracle.drawn(SEED, AS_GIVEN)
        for mutant in takers:
            index = mutant.takes_as_given
            if index is None or torch.equal(given[index], case.tensors[index]):
                continue  # there is but one choice of them
            made = mutant.make(case)
            if made is not None and self._equal(case, made):
                found.unused.add(index)
            elif made is not None and self._right(case, made):
                found.weak.append(self._reason(mutant))
            else:
                found.tell = True
        return found

    def _can_be_judged_at(self, how: str) -> bool:
        """Whether inputs of this distribution count, be it that they were tried already."""
        if how not in (*self.counted, *self.uncounted):
            self._case(how)
        return how in self.counted

    def _reason(self, mutant: Mutant) -> str:
        where = "every check" if len(self.counted) > 1 else f"the only check that counts ({', '.join(self.counted)})"
        return f"{mutant.name} would pass {where}"

    def _stale(self, case: Case) -> list[str]:
        """Whether an answer kept from inputs that differ in one element of sixteen would pass, wherever that is taken from."""
        if not case.counted:
            return []
        for how in ALIKE:
            passes = self._kept_answer_passes(case, how)
            if passes is None and how == ALIKE[0]:
                return []
            if passes is False:
                self.alike = how
                return []
        return ["the answer to inputs of which one element in sixteen differs would pass"]

    def _kept_answer_passes(self, case: Case, how: str) -> bool | None:
        """The same for one distribution; None where it can't be judged by, or the change does not matter."""
        generator = torch.Generator().manual_seed(SEED)
        mixed = []
        try:
            others = case.others if how == case.how else self.oracle.drawn(SEED + 1, how)
            for given, other in zip(case.tensors, others, strict=True):
                taken = torch.randint(0, 16, given.shape, generator=generator, dtype=torch.uint8) == 0
                mixed.append(torch.where(taken, other, given))
            answered = answering.answer(self.oracle, mixed, jumps=self.jumps)
        except Exception:
            return None  # it does not take mixtures
        alike = replace(case, tensors=mixed, answered=answered)
        if not all(self._judge(alike, i, own)["near"] for i, own in enumerate(alike.own)):
            return None
        return None if self._equal(alike, case.own) else self._right(alike, case.own)

    def _weights_are_seen(self, case: Case) -> list[str]:
        """Whether an answer with the weights that the constructor made passes where others are in use."""
        model = self.oracle.model
        if not case.counted or self._late() or not any(t.is_floating_point() for t in model.state_dict().values()):
            return []
        state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
        before, double = self.oracle.buffers_before, self.oracle.in_double
        try:
            draws.alter_state(model, torch.Generator().manual_seed(WEIGHTS_SEED))
            updated = {name for name, _ in model.named_buffers()} if model.training else set()
            if all(torch.equal(t, state[name]) for name, t in model.state_dict().items() if name not in updated):
                return []  # it has constants alone, and averages that a call only adds to
            self.oracle.buffers_before = {n: b.detach().clone() for n, b in model.named_buffers()}
            self.oracle.in_double = None
            answered = answering.answer(self.oracle, case.tensors, jumps=self.jumps)
        except Exception:
            return []
        finally:
            with torch.no_grad():
                for name, tensor in model.state_dict().items():
                    tensor.copy_(state[name])
            self.oracle.buffers_before, self.oracle.in_double = before, double
        altered = replace(case, answered=answered)
        if not all(self._judge(altered, i, own)["near"] for i, own in enumerate(altered.own)):
            return []
        return ["an answer that ignores the weights would pass"] if self._right(altered, case.own) else []

    # -- what else is to be known --------------------------------------------------------------------------------------

    def _has_jumps(self, case: Case) -> bool:
        """Whether a small change of the inputs makes some output element leap."""
        for seed in range(answering.NUDGES if sum(t.numel() for t in case.own) < LARGE else 1):
            moved = answering.nudged(self.oracle, case.tensors, JUMP_NUDGE, seed)
            rows = zip(case.answered.exact, moved, case.answered.scores, strict=True)
            if any(bool(outputs.jumped(a, b, JUMP_HEIGHT).any()) for a, b, scores in rows if scores is None):
                return True
        return False

    def _too_many_jumps(self) -> list[str]:
        """Where many elements lie at a discontinuity, little is left to check."""
        lost = [how for how in QUICK if how in self.uncounted]
        if len(lost) <= len(QUICK) // 2:
            return []
        return [f"torch's own result can't be judged by at {', '.join(lost)}: too many elements hang on rounding"]

    def _depends(self, case: Case) -> tuple[float, ...]:
        left = max(0.2, min(2.0, self.deadline - time.monotonic()))
        return tuple(depending.shares(self.oracle, case.tensors, case.others, left))

    def _flops(self, case: Case) -> int | None:
        try:
            with counting.Counting() as counted:
                self.oracle.forward(self.oracle.seed, values.decode(self.oracle.tree, case.tensors))
        except Exception:
            return None
        finally:
            self.oracle.restore()
        return int(counted.flops)


def _sections(case: Case, index: int, got: torch.Tensor) -> tuple[Case, int, torch.Tensor] | None:
    """Some neighbourhoods of a large output, with what belongs to them; None where it is not large, or holds indices."""
    found = case.answered
    whole = got.numel() // CHUNK * CHUNK
    if whole < 4 * SECTIONS * CHUNK or found.scores[index] is not None:
        return None
    step = whole // CHUNK // SECTIONS

    def some(tensor: torch.Tensor) -> torch.Tensor:
        return outputs.in_order(tensor)[:whole].view(-1, CHUNK)[::step].reshape(-1)

    jumps = found.jumps[index]
    answered = Answered(
        [some(found.own[index])], [some(found.exact[index])], [None], [None if jumps is None else some(jumps)]
    )
    return replace(case, answered=answered), 0, some(got)
