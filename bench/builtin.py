"""What the built-in coder's kernels reach: eager over kernel, for the best of a few schedules, in one process.

    python bench/builtin.py [PROBLEM.py ...] [--seconds 2] [--all]

Not a verdict: no jail, no confidence. It says in a minute whether a change of the printer helped.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
# The judge's settings for both sides: without them a fresh mapping's page faults drown what is measured.
ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "17179869184"}


def main() -> None:
    """Times every problem and prints a table."""
    if any(os.environ.get(name) != value for name, value in ALLOCATOR.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing for each schedule")
    parser.add_argument("--threads", type=int, help="as many as there are cores if not given")
    parser.add_argument("--all", action="store_true", help="print every schedule, not the best alone")
    options = parser.parse_args()
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    best = []
    for path in options.problems or sorted((ROOT / "problems").rglob("*.py")):
        best += [ratio for ratio in [_problem(path, options.seconds, options.all)] if ratio is not None]
    if best:
        print(f"{'geometric mean':32s} {math.exp(statistics.fmean(map(math.log, best))):6.2f}x of {len(best)}")


def _problem(path: Path, seconds: float, every: bool) -> float | None:
    import torch

    from apps.agents.builtin.cpp.candidate import write_candidate
    from apps.agents.builtin.lowering import lower
    from apps.agents.builtin.reading import read
    from apps.agents.ports import CannotWrite
    from apps.kernels.inside import graphs

    problem = _imported(path.read_text(), path.stem)
    torch.manual_seed(0)
    model, inputs = problem.Model(*problem.get_init_inputs()).eval(), problem.get_inputs()
    states = [graphs.tensor_fact(n, "parameter", v, n) for n, v in model.named_parameters()]
    states += [graphs.tensor_fact(n, "buffer", v, n) for n, v in model.named_buffers()]
    try:
        meaning = read(graphs.as_graph(graphs.export(model, tuple(inputs))))
    except CannotWrite as refused:
        print(f"{path.stem:32s} {refused}", flush=True)
        return None
    found: dict[str, float] = {}
    sources: dict[str, str] = {}
    with torch.no_grad():
        wanted = model(*inputs)
        for name, schedule in _schedules().items():
            wide = schedule.width == 512
            source = write_candidate(
                meaning, lower(meaning, schedule), tuple(states), polynomials=schedule.polynomials, wide=wide, title="."
            )
            if source in sources.values():
                continue
            sources[name] = source
            made = _imported(source, name).ModelNew()
            made.load_state_dict(model.state_dict())
            error = _difference(made(*inputs), wanted)
            found[name], eager, kernel = _ratio(lambda: model(*inputs), lambda made=made: made(*inputs), seconds)  # type: ignore[misc]
            if every:
                print(
                    f"  {name:38s} {found[name]:6.2f}x  {eager:8.3f} -> {kernel:7.3f} ms  differs {error:.1e}",
                    flush=True,
                )
    name = max(found, key=lambda one: found[one])
    print(f"{path.stem:32s} {found[name]:6.2f}x by {name}", flush=True)
    return found[name]


def _schedules() -> dict[str, Any]:
    from apps.agents.builtin.schedule import Schedule

    plain = Schedule(split=8)
    wide = plain.having(width=512, polynomials=True, accumulators=4, reciprocals=True)
    return {
        "naive": Schedule(),
        "split": plain,
        "vectors": wide,
        "vectors, streaming": wide.having(streaming=True),
        "vectors, one pass": wide.having(online=True, moments=True),
        "vectors, one pass, streaming": wide.having(online=True, moments=True, streaming=True),
        "vectors, keep": wide.having(keep=True),
        "vectors, keep, streaming": wide.having(keep=True, streaming=True),
        "vectors, wide tile": wide.having(tile=1024),
    }


def _imported(source: str, name: str) -> ModuleType:
    path = Path(tempfile.mkdtemp(prefix="bench-")) / f"{name.replace(' ', '_').replace(',', '')}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _difference(found: Any, wanted: Any) -> float:
    import torch

    if isinstance(wanted, tuple | list):
        return max(_difference(a, b) for a, b in zip(found, wanted, strict=True))
    if wanted.dtype.is_floating_point:
        return float((found.double() - wanted.double()).abs().max() / wanted.double().abs().max().clamp_min(1e-30))
    return float(torch.ne(found, wanted).sum())


def _ratio(eager: Callable[[], object], kernel: Callable[[], object], seconds: float) -> tuple[float, float, float]:
    """Median of paired ratios, and both minima in milliseconds."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(3):
        eager(), kernel()
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(times[0]) < 5:
        for side, call in enumerate((eager, kernel)):
            begin = time.perf_counter()
            call()
            times[side].append(time.perf_counter() - begin)
    ratios = [a / b for a, b in zip(*times, strict=True)]
    return statistics.median(ratios), 1e3 * min(times[0]), 1e3 * min(times[1])


if __name__ == "__main__":
    main()
