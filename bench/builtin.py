"""What the built-in coder reaches on the starter problems, or on those named: a table and its geometric mean.

    python bench/builtin.py [PROBLEM.py ...] [--quick | --judge] [--versions 6] [--seconds 1] [--threads N] [--all]

By default, and in less time with `--quick` (no torch.compile, a third of the seconds), all is timed in this process: the
first version and then, as in a run without a profile, each move from the best version so far, kept where it is faster.
Both sides are called in turn; a speed-up is the median of paired ratios with its 95% interval by order statistics. That
is no verdict: no jail, one process, warm caches. `--judge` makes the real runs instead, one problem after the other, each
with a full judgement at its end, and shows what that says; some minutes a problem. Only on a quiet machine.
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
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
# The judge's settings for both sides: without them a fresh mapping's page faults drown what is measured.
ALLOCATOR = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "17179869184"}
HEAD = f"{'problem':34s} {'versions':>8s}  {'over eager':>20s}  {'over compile':>20s}  best schedule"


@dataclass(frozen=True)
class SpeedUp:
    """A ratio of times and its interval."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:5.2f} [{self.low:5.2f}, {self.high:5.2f}]"


@dataclass(frozen=True)
class Row:
    """One problem's line. `refused` says why there is nothing else."""

    name: str
    versions: int = 0
    eager: SpeedUp | None = None
    compiled: SpeedUp | None = None
    schedule: str = ""
    refused: str = ""

    def __str__(self) -> str:
        if self.refused:
            return f"{self.name:34s} {self.refused}"
        over = [f"{one or '-':>20}" if one is None else f"{one!s:>20s}" for one in (self.eager, self.compiled)]
        return f"{self.name:34s} {self.versions:8d}  {over[0]}  {over[1]}  {self.schedule}"


def main() -> None:
    """Prints a row for each problem as it is done, then the geometric means."""
    if any(os.environ.get(name) != value for name, value in ALLOCATOR.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ALLOCATOR})
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", type=Path)
    parser.add_argument("--quick", action="store_true", help="without torch.compile, a third of the seconds")
    parser.add_argument("--judge", action="store_true", help="real runs, each ended by a full judgement")
    parser.add_argument("--versions", type=int, default=6, help="that a problem may take")
    parser.add_argument("--seconds", type=float, default=1.0, help="of timing for each version")
    parser.add_argument("--threads", type=int, help="as many as there are cores if not given")
    parser.add_argument("--all", action="store_true", help="print every version, not the best alone")
    options = parser.parse_args()
    paths = options.problems or sorted((ROOT / "problems").rglob("*.py"))
    print(HEAD, flush=True)
    rows = []
    for row in _judged(paths, options) if options.judge else _timed(paths, options):
        print(row, flush=True)
        rows.append(row)
    for what, found in (
        ("eager", [row.eager for row in rows if row.eager]),
        ("compile", [row.compiled for row in rows if row.compiled]),
    ):
        if found:
            mean = math.exp(statistics.fmean(math.log(one.median) for one in found))
            worst = min(found, key=lambda one: one.median)
            print(f"geometric mean over {what}: {mean:.2f}x of {len(found)} problems, the least {worst.median:.2f}x")


# --- in this process --------------------------------------------------------------------------------------------


def _timed(paths: list[Path], options: argparse.Namespace) -> Any:
    import torch

    from apps.kernels.host.report import host_report

    if options.threads:
        torch.set_num_threads(options.threads)
    host = host_report(quick=True)
    seconds = options.seconds / 3 if options.quick else options.seconds
    for path in paths:
        with torch.no_grad():
            yield _problem(path, host, options.versions, seconds, not options.quick, options.all)


def _problem(path: Path, host: Any, most: int, seconds: float, compiled: bool, every: bool) -> Row:
    import torch

    from apps.agents.builtin.moves import edits
    from apps.agents.builtin.opening import opening
    from apps.agents.builtin.search import Workshop
    from apps.agents.words import Assignment, CannotWrite
    from apps.kernels.facts import ProblemFacts
    from apps.kernels.inside import graphs

    problem = _imported(path.read_text(), path.stem)
    torch.manual_seed(0)
    model, inputs = problem.Model(*problem.get_init_inputs()).eval(), problem.get_inputs()
    states = [graphs.tensor_fact(n, "parameter", v, n) for n, v in model.named_parameters()]
    states += [graphs.tensor_fact(n, "buffer", v, n) for n, v in model.named_buffers()]
    graph = graphs.as_graph(graphs.export(model, tuple(inputs)))
    facts = ProblemFacts(inputs=graph.inputs, graph=graph, parameters=tuple(states))
    name = f"{path.parent.name}/{path.stem}"
    try:
        shop = Workshop(Assignment(problem="", facts=facts, host=host))
        schedule, _ = opening(shop)
    except CannotWrite as refused:
        return Row(name, refused=str(refused))
    wanted = model(*inputs)
    tried: dict[str, float] = {}

    def version(plan: Any) -> Callable[[], object] | None:
        source = shop.source(plan)
        if source in tried:
            return None
        made = _imported(source, "candidate").ModelNew()
        made.load_state_dict(model.state_dict())
        error = _difference(made(*inputs), wanted)
        tried[source] = _speedup(lambda: model(*inputs), lambda: made(*inputs), seconds).median
        if every:
            print(f"    {tried[source]:5.2f}x  differs {error:.1e}  {_told(plan)}", flush=True)
        return lambda: made(*inputs)

    best, speed = version(schedule), next(iter(tried.values()))
    for move, after in _climb(schedule, host, edits):
        # The schedule that a move edits is the best one by now.
        changed = move.edit(schedule, host) or after
        found = version(changed) if len(tried) < most and shop.source(changed) not in tried else None
        if found is not None and tried[shop.source(changed)] > 1.02 * speed:
            best, schedule, speed = found, changed, tried[shop.source(changed)]
    assert best is not None
    eager = _speedup(lambda: model(*inputs), best, 2 * seconds)
    return Row(
        name, len(tried), eager, _over_compile(model, inputs, best, seconds) if compiled else None, _told(schedule)
    )


def _climb(schedule: Any, host: Any, edits: Any) -> Any:
    """Every move in the prior order, twice: the second time from what the first left."""
    for _ in range(2):
        yield from edits(schedule, host)


def _over_compile(model: Any, inputs: Any, best: Callable[[], object], seconds: float) -> SpeedUp | None:
    import torch

    try:
        compiled = torch.compile(model)
        compiled(*inputs)
    except Exception as failed:  # whatever the compiler raises, the rest of the table stands
        print(f"    torch.compile: {type(failed).__name__}", file=sys.stderr)
        return None
    return _speedup(lambda: compiled(*inputs), best, seconds)


def _told(schedule: Any) -> str:
    """What a schedule has beyond plain loops."""
    from apps.agents.builtin.schedule import Schedule

    plain, plan = Schedule().to_plain(), schedule.to_plain()
    changed = {name: value for name, value in plan.items() if value != plain[name] and name != "resident"}
    return ", ".join(name if value is True else f"{name} {value}" for name, value in changed.items()) or "plain loops"


def _imported(source: str, name: str) -> ModuleType:
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        path = Path(place) / f"{name}.py"
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


def _speedup(reference: Callable[[], object], kernel: Callable[[], object], seconds: float) -> SpeedUp:
    """The median of paired ratios, in turns that change places, and its 95% interval by order statistics."""
    for _ in range(3):
        reference(), kernel()
    ratios: list[float] = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until or len(ratios) < 9:
        took = {}
        for side in ((reference, kernel), (kernel, reference))[len(ratios) % 2]:
            begin = time.perf_counter()
            side()
            took[side] = time.perf_counter() - begin
        ratios.append(took[reference] / took[kernel])
    ratios.sort()
    count = len(ratios)
    reach = 1.96 * math.sqrt(count) / 2
    low, high = max(0, math.floor(count / 2 - reach)), min(count - 1, math.ceil(count / 2 + reach))
    return SpeedUp(statistics.median(ratios), ratios[low], ratios[high])


# --- real runs --------------------------------------------------------------------------------------------------


def _judged(paths: list[Path], options: argparse.Namespace) -> Any:
    from apps.kernels.host.report import host_report
    from apps.kernels.jail import Zygote

    with Zygote() as zygote:
        host = host_report(quick=True)
        for path in paths:
            yield _run(path, zygote, host, options.versions)


def _run(path: Path, zygote: Any, host: Any, most: int) -> Row:
    from apps.agents.builtin import BuiltinCoder, BuiltinConductor
    from apps.agents.builtin.plan import plan_of
    from apps.agents.facts import VersionJudged, VersionKept
    from apps.agents.journal import MemoryJournal
    from apps.agents.local import Interrupt, LocalEvaluator, WallClock
    from apps.agents.loop import optimise
    from apps.agents.steps.course import Team
    from apps.agents.words import Assignment
    from apps.kernels.evaluation import Tier
    from apps.kernels.inspect import inspect

    class Ears:
        def __init__(self) -> None:
            self.versions: dict[int, Any] = {}
            self.judged: dict[int, Any] = {}

        def fact(self, fact: object) -> None:
            if isinstance(fact, VersionKept):
                self.versions[fact.attempt.number] = fact.attempt
            elif isinstance(fact, VersionJudged) and fact.evaluation.tier is Tier.FULL:
                self.judged[fact.number] = fact.evaluation

        def text(self, step: str, agent: object, text: str) -> None:
            pass

    source, name = path.read_text(), f"{path.parent.name}/{path.stem}"
    facts, ears = inspect(source, zygote=zygote), Ears()
    run = Assignment(source, facts, host, iterations=most, allow_weak_isolation=True)
    team = Team(
        BuiltinCoder(), BuiltinConductor(), LocalEvaluator(run, zygote), MemoryJournal(ears), Interrupt(), WallClock()
    )
    ended = optimise(run, team)
    judged = ears.judged.get(ended.attempt or 0)
    if judged is None:
        return Row(name, refused=ended.reason)
    timing, plan = judged.timing, plan_of(ears.versions.get(ended.attempt or 0))
    eager = None
    if timing.speedup is not None:
        low, high = timing.speedup.decision_interval or timing.speedup.ci95
        eager = SpeedUp(timing.speedup.median, low, high)
    compiled = None
    if eager is not None and timing.compiled_reference is not None and timing.reference is not None:
        ratio = timing.compiled_reference.median_ms / timing.reference.median_ms
        compiled = SpeedUp(eager.median * ratio, eager.low * ratio, eager.high * ratio)
    outcome = f"{timing.outcome}: " if timing.outcome is not None else ""
    return Row(name, len(ears.versions), eager, compiled, outcome + (_told(plan.schedule) if plan else ""))


if __name__ == "__main__":
    main()
