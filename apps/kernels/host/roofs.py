"""The bandwidth roof over a kernel, from the measured ceilings: by its read/write mix, its working set, and threads.

A mix between two measured ones is no slower than doing them one after the other, so seconds per byte are interpolated
linearly in the share of bytes read, between the mixes whose line lies lowest (the lower convex hull). Non-temporal
variants count as ways to do the same mix: a roof is what the best choice of stores reaches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apps.kernels.machine import Ceilings

# Share of the bytes that are read, by what the program names: no write-allocate.
READ_SHARE = {"read": 1.0, "triad": 2 / 3, "copy": 0.5, "copy_nt": 0.5, "write": 0.0, "write_nt": 0.0}


@dataclass(frozen=True)
class Roof:
    """GB/s at most, the mix it was had from (two joined by + where interpolated), the measured working set it stands for."""

    gbytes_per_s: float
    mix: str
    working_set_bytes: int


def bandwidth_roof(
    ceilings: Ceilings, read_bytes: int, written_bytes: int, threads: int, *, streaming: bool = True
) -> Roof | None:
    """The roof for a kernel that reads and writes so many bytes once; None where nothing fitting was measured.

    `streaming` False leaves non-temporal stores out. The working set taken is the nearest measured one by ratio, since
    bandwidth falls by steps from cache to cache. What a larger set reached a smaller one can reach too, so that a figure
    spoiled by a busy moment does not lower the roof.
    """
    total = read_bytes + written_bytes
    rows = [b for b in ceilings.bandwidth if b.threads == threads and b.mix in READ_SHARE]
    if not streaming:
        rows = [b for b in rows if not b.mix.endswith("_nt")]
    if not rows or total <= 0:
        return None
    nearest = min({b.working_set_bytes for b in rows}, key=lambda size: max(size / total, total / size))
    reached: dict[str, float] = {}
    for row in rows:
        if row.working_set_bytes >= nearest:
            reached[row.mix] = max(row.gbytes_per_s, reached.get(row.mix, 0.0))
    return _roof_at(reached, read_bytes / total, nearest)


def largest_bandwidth(ceilings: Ceilings, working_set_bytes: int) -> float | None:
    """The most GB/s that any mix reached with any number of threads on a working set no larger than this.

    This is the one for a floor under possible times: it never takes a slower, larger working set for the kernel's own.
    Where all measured ones are larger, the smallest of them is taken.
    """
    sizes = {b.working_set_bytes for b in ceilings.bandwidth}
    if not sizes:
        return None
    size = max((s for s in sizes if s <= working_set_bytes), default=min(sizes))
    return max(b.gbytes_per_s for b in ceilings.bandwidth if b.working_set_bytes >= size)


def _roof_at(reached: Mapping[str, float], read_share: float, size: int) -> Roof | None:
    """The fastest way to a read share: a measured mix at that share, or the best pair around it."""
    points = [(READ_SHARE[mix], 1 / rate, mix) for mix, rate in reached.items() if rate > 0]
    best: tuple[float, str] | None = None
    for x0, cost0, mix0 in points:
        for x1, cost1, mix1 in points:
            if not x0 <= read_share <= x1:
                continue
            weight = (read_share - x0) / (x1 - x0) if x1 > x0 else 0.0
            cost = cost0 * (1 - weight) + cost1 * weight
            name = mix0 if weight < 0.02 else mix1 if weight > 0.98 else f"{mix0}+{mix1}"
            if best is None or cost < best[0] - 1e-15:
                best = (cost, name)
    if best is None:  # only mixes on one side of it were measured: the nearest stands
        _, cost, name = min(points, key=lambda point: abs(point[0] - read_share), default=(0.0, 0.0, ""))
        return Roof(1 / cost, name, size) if cost else None
    return Roof(1 / best[0], best[1], size)
