"""The innermost loops that a candidate's time goes into, with what their instructions are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.evaluation import HotLoop
from apps.kernels.profile.access import Access, memory_access
from apps.kernels.profile.attribution import Attribution
from apps.kernels.profile.disassembly import Loop
from apps.kernels.profile.instruction_mix import instruction_mix, vector_bits
from apps.kernels.profile.prediction import Prediction, predict
from apps.kernels.profile.recurrence import recurrence_cycles, throughput_cycles

MOST_LOOPS = 4
# Loops under this share of the samples are start-up, remainders and the like.
SMALLEST_SHARE = 0.03
# With fewer samples than this, where they lie is chance.
FEWEST_SAMPLES = 30


@dataclass(frozen=True)
class AnalysedLoop:
    """A loop with all that is read from its listing. `share` is of all samples, None where nothing was sampled."""

    loop: Loop
    share: float | None
    mix: dict[str, int]
    bits: int
    access: Access
    recurrence: float
    throughput: float
    prediction: Prediction | None

    @property
    def latency_chain_ratio(self) -> float:
        """Cycles that the longest chain from iteration to iteration takes over those that throughput alone would."""
        bound = self.prediction.throughput_cycles if self.prediction else self.throughput
        return self.recurrence / bound if bound else 0.0

    def result(self) -> HotLoop:
        """As an evaluation carries it."""
        mix = self.mix | {"strided_loads": self.access.strided, "indirect_loads": self.access.indirect}
        mix["vector_bits"] = self.bits
        cycles = round(self.prediction.cycles, 2) if self.prediction else None
        return HotLoop(self.loop.symbol, self.share, mix, self.loop.assembly, cycles)


def hottest_loops(loops: Mapping[Path, Sequence[Loop]], sampled: Attribution | None) -> tuple[AnalysedLoop, ...]:
    """The hottest loops, at most `MOST_LOOPS`: by samples where there are any, else by how much they compute.

    Time in the mathematics library counts for the loops that call out, in proportion to their own samples: it is spent
    on their behalf.
    """
    if sampled is None or sampled.total < FEWEST_SAMPLES:
        return _ranked_unsampled(loops, sampled.addresses if sampled else {})
    shares: list[tuple[Loop, float]] = []
    for path, found in loops.items():
        counts = sampled.addresses.get(path, Counter())
        shares += [(loop, _share(loop, counts, sampled.total)) for loop in found]
    calling = sum(share for loop, share in shares if _calls(loop))
    if calling > 0:
        outside = sampled.share_of_mathematics()
        shares = [(loop, s * (1 + outside / calling) if _calls(loop) else s) for loop, s in shares]
    hot = sorted((pair for pair in shares if pair[1] >= SMALLEST_SHARE), key=lambda pair: -pair[1])
    return tuple(analyse(loop, round(share, 4)) for loop, share in hot[:MOST_LOOPS])


def _ranked_unsampled(
    loops: Mapping[Path, Sequence[Loop]], addresses: Mapping[Path, Counter[int]]
) -> tuple[AnalysedLoop, ...]:
    """Loops that the few samples there are did hit, then by how much they compute."""
    ranked = [
        ((_share(loop, addresses.get(path, Counter()), 1), _weight(loop)), loop)
        for path, found in loops.items()
        for loop in found
        if _weight(loop) > 0
    ]
    ranked.sort(key=lambda pair: pair[0], reverse=True)
    return tuple(analyse(loop, None) for _, loop in ranked[:MOST_LOOPS])


def analyse(loop: Loop, share: float | None) -> AnalysedLoop:
    """Everything that the listing of one loop says."""
    return AnalysedLoop(
        loop,
        share,
        instruction_mix(loop),
        vector_bits(loop),
        memory_access(loop),
        recurrence_cycles(loop),
        throughput_cycles(loop),
        predict(loop),
    )


def _share(loop: Loop, counts: Counter[int], total: int) -> float:
    return sum(n for address, n in counts.items() if loop.start <= address <= loop.end) / total


def _calls(loop: Loop) -> bool:
    return any(i.mnemonic.startswith("call") for i in loop.instructions)


def _weight(loop: Loop) -> int:
    """Without samples: wide and computing loops are what a kernel is about, remainders and set-up are not."""
    mix = instruction_mix(loop)
    wide = 4 * mix["vector_512"] + 2 * mix["vector_256"] + mix["vector_128"]
    if len(loop.instructions) > 60 and not wide:
        return 1
    return wide + mix["fma"] + (4 if mix["calls"] else 0) + min(mix["scalar"], 4) if wide or mix["scalar"] else 0
