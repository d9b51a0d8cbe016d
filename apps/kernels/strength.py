"""How much a problem's own checks can tell: found out once, before any candidate is judged, and kept by content.

A problem is *weak* where something that computes nothing of it passes its checks, and its precision is *not provable*
where the problem computed in fewer bits passes them. Stronger inputs are drawn where they help; what they leave is said.
"""

from __future__ import annotations

import functools
import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.evaluation import IMPRECISE, JUMPS, OF_PROBLEM, WEAK, Robustness
from apps.kernels.facts import Quirk
from apps.kernels.host.store import keep_measurement, measurements_directory, read_measurement
from apps.kernels.inside import draw_names as names

SCHEMA = 1
# Distributions of inputs, as `inside.draws` makes them.
QUICK = (names.AS_GIVEN, names.MOTTLED, names.LONE, names.NORMAL, names.SMALL, names.LOW_BITS)
EXTREME = (names.FAR, names.HUGE)  # come last: buffers that a call updates keep what they were given
FULL = (
    names.AS_GIVEN, names.MOTTLED, names.LONE, names.NORMAL, names.SMALL, names.LARGE, names.OFFSET, names.HEAVY, names.SPARSE,
    names.FLAT, names.LOW_BITS, names.ONE_SIDED, names.OTHER_SIDE, names.HALVES,
    *EXTREME,
)  # fmt: skip
# Tried on what the quick checks let pass; those that catch something are added to them. Other integers join them where a
# problem has integers or booleans among its inputs and they tell something.
STRONGER = (
    names.LARGE, names.OFFSET, names.HEAVY, names.SPARSE, names.FLAT, names.NEARLY_ALIKE, names.STANDS_OUT, names.SPIKED,
    names.CANCELLING, names.CANCELLING_PAIRS, names.CANCELLING_ROWS,
)  # fmt: skip
# Tried one after the other until an answer kept from inputs that differ from these in one element of sixteen is told: of a
# mean over millions of numbers, only what comes from another distribution moves more than rounding.
ALIKE = (names.AS_GIVEN, names.LARGE, names.OFFSET)
# Among their terms many are alike, or one outweighs the rest: a plain running sum's rounding errors add up there.
DRIFTING = (
    names.LARGE, names.HEAVY, names.SPARSE, names.FLAT, names.NEARLY_ALIKE, names.STANDS_OUT, names.LOW_BITS,
    names.MOTTLED, names.SPIKED, names.FAR, names.HALVES, names.ONE_SIDED, names.OTHER_SIDE,
)  # fmt: skip
# What timed calls' inputs are mixed with, beside those as given: the first at which the problem can be judged.
TIMED = (names.SPIKED, names.MOTTLED)
UNUSED = "unused input"
CONFIDENCE = 0.99


@dataclass(frozen=True)
class Strength:
    """What was found out about one problem at one choice of sizes.

    `quick` and `full` are the distributions its candidates are checked on. `weak` holds sentences, one for each mutant
    that still passes; `imprecise` the lower precisions that do. `uncounted` are the distributions at which torch's own
    result is too far from float64 to judge by, `left_out` the largest share of elements left out at a discontinuity.
    `alike` is where the one element in sixteen is taken from that tells an answer kept from before, `timed` what a part of
    timed calls' inputs is mixed with, so that they are not all alike.
    `dependence` is, for each input tensor, the share of its elements on which the output is seen to depend at least, and
    `flops` what a call does as written. `complete` is False where time ran out.
    """

    quick: tuple[str, ...] = QUICK
    full: tuple[str, ...] = FULL
    tried: tuple[str, ...] = ()
    weak: tuple[str, ...] = ()
    imprecise: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    left_out: float = 0.0
    jumps: bool = False
    alike: str = ALIKE[0]
    timed: str = names.AS_GIVEN
    unused: tuple[int, ...] = ()
    dependence: tuple[float, ...] = ()
    flops: int | None = None
    complete: bool = True
    seconds: float = 0.0
    schema: int = SCHEMA

    @property
    def refusal(self) -> str | None:
        """Why nothing can be judged by this problem, or None."""
        if self.counted or not self.uncounted:
            return None
        return (
            "torch's own result is far from the float64 answer on all inputs that were tried "
            f"({', '.join(self.uncounted)}), so no output can be called right. Choose inputs at which it is well conditioned"
        )

    def notes(self) -> tuple[Quirk, ...]:
        """What a person should know of the problem before they believe a verdict on it."""
        found = []
        if self.weak:
            found.append(Quirk(WEAK, "; ".join(self.weak)))
        if self.imprecise:
            passing = ", ".join(self.imprecise)
            found.append(Quirk(IMPRECISE, f"the same problem computed with {passing} passes all checks"))
        if self.jumps:
            words = (
                "small changes of its inputs make some outputs jump; elements within rounding of a jump are left out"
            )
            found.append(Quirk(JUMPS, f"{words} (at most {self.left_out:.2%} of them)"))
        found += [Quirk(UNUSED, f"the output does not depend on input {index}") for index in self.unused]
        if not self.complete:
            found.append(Quirk("partly tested", f"testing the problem itself stopped after {self.seconds:.0f} s"))
        return tuple(found)

    def robustness(self) -> tuple[Robustness, ...]:
        """The same for an evaluation: what its checks could not tell."""
        return tuple(Robustness(note.name, False, note.detail) for note in self.notes() if note.name in OF_PROBLEM)


def least_share(seen: int, tried: int, confidence: float = CONFIDENCE) -> float:
    """The least share of elements that matter, if `seen` of `tried` random ones did (Clopper and Pearson, one-sided)."""
    if seen <= 0:
        return 0.0
    low, high = 0.0, seen / tried
    for _ in range(40):
        middle = (low + high) / 2
        tail = sum(math.comb(tried, k) * middle**k * (1 - middle) ** (tried - k) for k in range(seen, tried + 1))
        low, high = (middle, high) if tail < 1 - confidence else (low, middle)
    return low


def kept_strength(source: str, torch: str) -> Strength | None:
    """What was found out here before about this source, by this version of torch and of the checks."""
    return read_measurement(Strength, _path(source, torch))


def keep_strength(strength: Strength, source: str, torch: str) -> None:
    """Keep it for the candidates that come."""
    keep_measurement(strength, _path(source, torch))


def _path(source: str, torch: str) -> Path:
    key = hashlib.sha256(f"{_checks()}\0{torch}\0{source}".encode()).hexdigest()[:32]
    return measurements_directory() / "problems" / f"{key}.json"


@functools.cache
def _checks() -> str:
    """Stands for the checks and all that is tried on them: what was found out about other checks says nothing of these.

    Limits, distributions, mutants and the reference's own handling lie all over `inside`; any change there counts.
    """
    inside = sorted(Path(__file__).with_name("inside").glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in (Path(__file__), *inside))).hexdigest()
