"""A host's processor as the cost model sees it: cycles, lanes, and seconds per byte from each level of memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from apps.kernels.host.roofs import bandwidth_roof
from apps.kernels.machine import HostReport

# Multiply-adds of float32 that a core starts in a cycle: two units of 128 bits, two of 256 (or one of 512), two of 512.
_LANES_A_CYCLE = (16, 32, 8, 4)
_LEAST_HERTZ, _MOST_HERTZ = 1.8e9, 5.9e9
# Where nothing was measured: a plain machine of the last ten years.
_HERTZ, _MEMORY, _CACHE, _REGION = 3e9, 20.0, 100.0, 2e-6
CACHE_LINE = 64


@dataclass(frozen=True)
class Processor:
    """`lanes_a_cycle`: float32 elements that one arithmetic instruction's units take in a cycle, on one core."""

    host: HostReport
    hertz: float
    lanes_a_cycle: int

    @staticmethod
    def of(host: HostReport) -> Processor:
        """The clock and the units that explain the measured peak of one thread: a multiply-add is two operations."""
        peak = host.ceilings.peak_gflops.get("fp32_1")
        if not peak:
            return Processor(host, _HERTZ, max(4, host.vector_bits // 32))
        for lanes in _LANES_A_CYCLE:
            hertz = peak * 1e9 / (2 * lanes)
            if _LEAST_HERTZ <= hertz <= _MOST_HERTZ:
                return Processor(host, hertz, lanes)
        return Processor(host, _HERTZ, max(4, host.vector_bits // 32))

    @property
    def cores(self) -> int:
        """How many threads work at once."""
        return max(1, self.host.cores)

    @property
    def flops_a_second(self) -> float:
        """What all cores reach together in float32, a multiply-add counted as two."""
        measured = self.host.ceilings.peak_gflops.get("fp32_all")
        return measured * 1e9 if measured else 2 * self.lanes_a_cycle * self.hertz * self.cores

    @property
    def region_seconds(self) -> float:
        """What entering and leaving a parallel region takes."""
        measured = self.host.ceilings.parallel_region_us
        return measured * 1e-6 if measured else _REGION

    def vectors_a_cycle(self, bits: int) -> float:
        """Arithmetic instructions on vectors of that width in a cycle; at most two."""
        return min(2.0, 32 * self.lanes_a_cycle / bits)

    def main_seconds(self, read: float, written: float, threads: int, *, streaming: bool) -> float:
        """To move these bytes between the cores and where the arguments lie when a call begins.

        A call's neighbours in time use the caches too (the judge runs the reference in between), so arguments are taken
        to lie where a working set of twice their size does.
        """
        if read + written <= 0:
            return 0.0
        ceilings = self.host.ceilings
        if streaming:
            kept = tuple(b for b in ceilings.bandwidth if b.mix in ("read", "copy_nt", "write_nt"))
            ceilings = replace(ceilings, bandwidth=kept)
        roof = bandwidth_roof(ceilings, int(2 * read), int(2 * written), threads, streaming=streaming)
        return (read + written) / ((roof.gbytes_per_s if roof is not None else _MEMORY) * 1e9)

    def cache_seconds(self, moved: float, footprint: float, threads: int) -> float:
        """To read bytes again that a thread has touched `footprint` bytes ago."""
        rate = self.host.roof("read", int(footprint * threads), threads)
        return moved / ((rate or _CACHE) * 1e9)
