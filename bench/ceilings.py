"""Prints this machine's ceilings and how steady they are over repeats of the whole measurement.

    python bench/ceilings.py [--repeats 3] [--keep]

Each repeat measures everything afresh. A figure's scatter is (largest - smallest) / largest over the repeats: what lies
within it can't be told apart by a share of the roof. `--keep` writes the best of all repeats as this machine's ceilings.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from apps.kernels.evaluation import Progress
from apps.kernels.host.ceilings import KeptCeilings, keep_ceilings, measure_ceilings, merge_ceilings


def show(progress: Progress) -> None:
    """One line that is written over, on a terminal only."""
    if sys.stderr.isatty():
        percent = "" if progress.fraction is None else f"{progress.fraction:4.0%} "
        print(f"\r\033[K{percent}{progress.message}", end="", file=sys.stderr, flush=True)


def figures(kept: KeptCeilings) -> dict[str, float]:
    """Every ceiling by a readable name."""
    measured = kept.ceilings
    named = {f"peak {name} GFLOP/s": value for name, value in measured.peak_gflops.items()}
    for row in measured.bandwidth:
        named[f"{row.mix:9}{row.working_set_bytes / 1024:>9.0f} KiB x{row.threads} GB/s"] = row.gbytes_per_s
    named["parallel region us"] = measured.parallel_region_us or 0.0
    named["page fault us"] = measured.page_fault_us or 0.0
    return named


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3, help="how often everything is measured (default 3)")
    parser.add_argument("--keep", action="store_true", help="keep the best of all repeats as this machine's ceilings")
    options = parser.parse_args()
    repeats = [measure_ceilings(observe=show) for _ in range(max(1, options.repeats))]
    show(Progress("ceilings", ""))
    values: dict[str, list[float]] = defaultdict(list)
    for repeat in repeats:
        for name, value in figures(repeat).items():
            values[name].append(value)
    print(repeats[0].machine)
    print(f"{'figure':34}{'best':>10}{'scatter':>9}{'in rounds':>11}")
    best = merge_ceilings(repeats)
    for (name, value), inside in zip(figures(best).items(), inside_rounds(best), strict=True):
        scatter = (max(values[name]) - min(values[name])) / max(values[name])
        print(f"{name:34}{value:>10.2f}{scatter:>9.1%}{inside:>11.1%}")
    print(f"{sum(r.ceilings.seconds for r in repeats):.1f} s for {len(repeats)} repeats")
    if options.keep:
        keep_ceilings(best)
    return 0


def inside_rounds(kept: KeptCeilings) -> list[float]:
    """The spread between the rounds of a repeat, in the order of `figures`."""
    names = [f"peak/{name}" for name in kept.ceilings.peak_gflops]
    names += [f"bandwidth/{b.mix}/{b.working_set_bytes}/{b.threads}" for b in kept.ceilings.bandwidth]
    return [kept.spread.get(name, 0.0) for name in [*names, "cost/parallel_region", "cost/page_fault"]]


if __name__ == "__main__":
    sys.exit(main())
