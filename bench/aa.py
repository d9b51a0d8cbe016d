"""A/A: the same code against itself must never be called faster or slower.

    python bench/aa.py [--problems 20] [--judgements 5] [--seconds 3000] [--out FILE] [PROBLEM.py ...]

Each problem's reference is judged against itself in full: both sides run a copy of the problem's own class. After the
problems of problems/ come three of them at sizes so small that what a call costs beyond its work decides. Prints a
row a judgement, then the largest ratio by kind of call; results are kept in --out, so that a second start goes on where
the first ended. The pairs seen are then resampled, 10,000 judgements of them, under the same rule. Exit code 0 if
nothing was called faster or slower, 1 otherwise. `--calibrate` adds what was seen to this host's noise, from which
margins are taken; every full judgement of a candidate adds to it as well.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from apps.kernels.host.noise import keep_noise
from apps.kernels.jail import Zygote
from apps.kernels.judge import HostCannotJudge, ProblemRefused, compare_with_itself
from apps.kernels.judge.statistics import DECISION_LEVEL, interval_over_groups, kind_of_call, log_ratios, outcome
from apps.kernels.problem import Value, read_problem

ROOT = Path(__file__).resolve().parent.parent
SMALL: dict[str, dict[str, Value]] = {
    "elementwise/softsign.py": {"batch_size": 8, "features": 256},
    "reduction/softmax.py": {"batch_size": 16, "features": 128},
    "product/linear_gelu.py": {"batch_size": 4, "in_features": 64, "out_features": 64},
}


def main() -> int:
    """Judge, print, sum up."""
    options = _options()
    problems = _problems([Path(path) for path in options.paths])[: options.problems]
    kept = _read(options.out)
    started = time.monotonic()
    print(
        f"{'problem':32} {'#':>2} {'kind':>13} {'ms':>9} {'ratio':>8} {'99.9% interval':>20} {'outcome':>13} {'s':>5}"
    )
    with Zygote() as zygote:
        for number, (name, source) in itertools.product(range(options.judgements), problems):
            key = f"{name}#{number}"
            if key not in kept:
                if time.monotonic() - started > options.seconds:
                    print(f"stopped after {options.seconds} s; start again to go on")
                    return _sum_up(kept, options.calibrate)
                kept[key] = {"problem": name, **_judge(source, zygote)}
                _write(options.out, kept)
            _print(name, number, kept[key])
    return _sum_up(kept, options.calibrate)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="problems; by default those in problems/")
    parser.add_argument("--problems", type=int, default=20, help="how many")
    parser.add_argument("--judgements", type=int, default=5, help="of each problem")
    parser.add_argument("--seconds", type=float, default=3600, help="start no judgement after this long")
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "aa.json", help="where results are kept")
    parser.add_argument("--calibrate", action="store_true", help="write the noise seen as this host's")
    return parser.parse_args()


def _problems(paths: list[Path]) -> list[tuple[str, str]]:
    """Name and source of each: the paths given, or what problems/ has and some of it small."""
    if paths:
        return [(path.name, path.read_text(encoding="utf-8")) for path in paths]
    found = [(path.name, path.read_text(encoding="utf-8")) for path in sorted((ROOT / "problems").glob("**/*.py"))]
    for name, sizes in SMALL.items():
        small = read_problem((ROOT / "problems" / name).read_text(encoding="utf-8"), sizes)
        found.append((f"{Path(name).stem}, small", small.source))
    return found


def _judge(source: str, zygote: Zygote) -> dict[str, object]:
    started = time.monotonic()
    try:
        found = compare_with_itself(source, zygote=zygote)
    except (ProblemRefused, HostCannotJudge) as refusal:
        return {"refused": str(refusal).splitlines()[0]}
    speedup = found.timing.speedup
    if speedup is None or speedup.decision_interval is None or found.timing.candidate is None:
        return {"refused": f"{found.verdict.value}: {found.detail[:120]}"}
    return {
        "ms": found.timing.candidate.median_ms,
        "ratio": speedup.median,
        "interval": list(speedup.decision_interval),
        "outcome": found.timing.outcome.value if found.timing.outcome else "none",
        "margin": speedup.margin,
        "notes": list(found.timing.notes),
        "groups": [
            [round(ratio, 5) for ratio in log_ratios(sample.reference_us, sample.candidate_us)]
            for sample in found.timing.samples
        ],
        "seconds": time.monotonic() - started,
    }


def _print(name: str, number: int, row: dict[str, object]) -> None:
    if "refused" in row:
        print(f"{name:32} {number:2} {row['refused']}")
        return
    low, high = row["interval"]  # type: ignore[misc]
    print(
        f"{name:32} {number:2} {kind_of_call(float(str(row['ms'])) / 1000):>13} {row['ms']:9.4f} {row['ratio']:8.4f} "
        f"{low:9.4f} .. {high:7.4f} {row['outcome']:>13} {row['seconds']:5.0f}",
        flush=True,
    )


def _sum_up(kept: dict[str, dict[str, object]], calibrate: bool) -> int:
    rows = [row for row in kept.values() if "ratio" in row]
    wrong = [row for row in rows if row["outcome"] in ("faster", "slower")]
    by_kind: dict[str, list[float]] = {}
    for row in rows:
        by_kind.setdefault(kind_of_call(float(str(row["ms"])) / 1000), []).append(
            abs(math.log(float(str(row["ratio"]))))
        )
    for kind, found in by_kind.items():
        print(
            f"{kind}: {len(found)} judgements, |ratio - 1| median {statistics.median(found):.2%}, largest {max(found):.2%}"
        )
    print(f"{len(rows)} judgements, {len(wrong)} called faster or slower; {len(kept) - len(rows)} could not be judged")
    _print_resampled(rows)
    if calibrate and rows:
        for kind, found in by_kind.items():
            for ratio in found:
                keep_noise(kind, ratio)
        print("kept as this host's noise; see python -m apps.kernels host")
    return 1 if wrong or not rows else 0


def _print_resampled(rows: list[dict[str, object]], times: int = 10_000) -> None:
    """The rule on recorded noise: whole groups of one problem's judgements, drawn anew, each with a sign of its own."""
    draw = random.Random(0)
    by_problem: dict[str, list[tuple[list[float], float]]] = {}
    for row in rows:
        groups = [statistics.median(group) for group in row.get("groups", ())]  # type: ignore[attr-defined]
        if groups:
            by_problem.setdefault(str(row["problem"]), []).append((groups, float(str(row["margin"]))))
    if not by_problem:
        return
    wrong = 0
    for _ in range(times):
        judgements = draw.choice(list(by_problem.values()))
        groups = [group for found, _margin in judgements for group in found]
        picked = [draw.choice(groups) * draw.choice((-1, 1)) for _ in range(len(judgements[0][0]))]
        wrong += outcome(interval_over_groups(picked, DECISION_LEVEL), judgements[0][1]) != "within_noise"
    print(
        f"resampled {times:,} times from {sum(len(f) for f in by_problem.values())} judgements: {wrong / times:.3%} false"
    )


def _read(path: Path) -> dict[str, dict[str, object]]:
    return json.loads(path.read_text()) if path.exists() else {}


def _write(path: Path, kept: dict[str, dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1))


if __name__ == "__main__":
    sys.exit(main())
