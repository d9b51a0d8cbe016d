"""The profile of one candidate on a CPU: runs it, reads its machine code, asks the compiler, names the bottleneck."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from apps.kernels.evaluation import Metric, Profile, Progress, Unavailable
from apps.kernels.facts import ProblemFacts
from apps.kernels.machine import HostReport
from apps.kernels.profile.bottleneck import bottleneck
from apps.kernels.profile.compiler_log import Remark
from apps.kernels.profile.disassembly import Loop, NoDisassembly, disassemble, innermost_loops
from apps.kernels.profile.dispatched import Dispatched
from apps.kernels.profile.hot_loops import AnalysedLoop, hottest_loops
from apps.kernels.profile.names import metric
from apps.kernels.profile.prediction import why_no_predictions
from apps.kernels.profile.remarks import Compile, NoRemarks, vectorisation_remarks
from apps.kernels.profile.roofline import Placed, place, work_of
from apps.kernels.profile.runner import BuiltLibrary, ProfiledRunner, RunnerGone
from apps.kernels.profile.running import Running, measure_running, running_metrics

# Where this host's page faults were never timed: current Linux machines take 0.5 to 2 us.
_PAGE_FAULT_US = 1.0


def profile_candidate(
    facts: ProblemFacts,
    runner: ProfiledRunner,
    host: HostReport,
    *,
    candidate_us: float | None = None,
    window_us: float | None = None,
    dispatched: Dispatched | None = None,
    reference: Dispatched | None = None,
    seconds: float = 1.5,
    compile_text: Compile | None = None,
    observe: Callable[[Progress], None] = lambda progress: None,
) -> Profile:
    """Everything this host can find out about where the candidate's time goes.

    `candidate_us` is a call's time as the judge measured it and `window_us` that of an empty model; without them the
    profiling run's own time stands. `dispatched` is what one call was seen to give Torch to do, `reference` the same of the
    reference. `compile_text` runs a compiler elsewhere: in a jail, wherever the source is not trusted. Takes about
    `seconds` and a second for the machine code. Never raises for what can't be measured: that goes to `unavailable`,
    with the reason.
    """
    missing: list[Unavailable] = []
    observe(Progress("profile", "running it with all threads, with one, and under the sampler"))
    running = _run(runner, host.cores, seconds, missing)
    observe(Progress("profile", "reading its machine code"))
    hot = hottest_loops(_loops(runner.libraries, missing), running.samples if running else None)
    if hot and (why := why_no_predictions()):
        missing.append(Unavailable("cycles of loops", why))
    observe(Progress("profile", "asking the compiler which loops it vectorised"))
    remarks = _remarks(runner.libraries, compile_text, missing)

    placed = _placed(facts, host, running, candidate_us, missing)
    found = [*placed.metrics, *_time_metrics(running, candidate_us, window_us)]
    found += running_metrics(running, host.cores) if running else ()
    found += _fault_share(running, host)
    found += _loop_metrics(hot)
    if remarks is not None:
        found.append(metric("loops_not_vectorised", len({r.line for r in remarks if r.missed}), "compiler"))
    found += dispatched.metrics() if dispatched else ()
    found += reference.metrics("reference_") if reference else ()
    found.append(metric("host_vector_bits", host.vector_bits, "cpuinfo"))
    found.append(metric("host_cores", host.cores, "affinity and quota"))
    return Profile(
        tier="none" if running is None else "pmu" if running.counters else "software",
        metrics=tuple(found),
        roofline=placed.roofline,
        bottleneck=bottleneck({m.name: m.value for m in found}) if running else None,
        hot_loops=tuple(loop.result() for loop in hot),
        symbols=running.samples.symbols() if running and running.samples else (),
        remarks=tuple(str(remark) for remark in remarks or ()),
        unavailable=tuple(missing),
    )


def _run(runner: ProfiledRunner, cores: int, seconds: float, missing: list[Unavailable]) -> Running | None:
    try:
        running = measure_running(runner, cores, seconds)
    except (RunnerGone, ProcessLookupError) as problem:
        missing.append(Unavailable("everything measured while it runs", str(problem)))
        return None
    missing.extend(running.unavailable)
    return running


def _loops(libraries: Sequence[BuiltLibrary], missing: list[Unavailable]) -> dict[Path, tuple[Loop, ...]]:
    loops: dict[Path, tuple[Loop, ...]] = {}
    if not libraries:
        missing.append(Unavailable("hot loops", "the candidate built no library of its own"))
    for library in libraries:
        try:
            loops[library.path] = innermost_loops(disassemble(library.path))
        except NoDisassembly as problem:
            missing.append(Unavailable("hot loops", str(problem)))
    return loops


def _remarks(
    libraries: Sequence[BuiltLibrary], compile_text: Compile | None, missing: list[Unavailable]
) -> tuple[Remark, ...] | None:
    """Remarks of all libraries, None where none could be asked about."""
    remarks: list[Remark] = []
    asked = False
    for library in libraries:
        try:
            remarks += vectorisation_remarks(library, compile_text)
            asked = True
        except NoRemarks as problem:
            missing.append(Unavailable("compiler's remarks", str(problem)))
    return tuple(remarks) if asked else None


def _placed(
    facts: ProblemFacts,
    host: HostReport,
    running: Running | None,
    candidate_us: float | None,
    missing: list[Unavailable],
) -> Placed:
    work = work_of(facts)
    seconds = candidate_us / 1e6 if candidate_us else running.seconds if running else None
    if work is None or seconds is None:
        missing.append(Unavailable("roofline", "what the problem moves, or how long a call takes, is not known"))
        return Placed(None, ())
    placed = place(work, host.ceilings, host.cores, seconds)
    if placed.roofline is None:
        missing.append(Unavailable("roofline", "this host's ceilings were not measured"))
    return placed


def _time_metrics(running: Running | None, candidate_us: float | None, window_us: float | None) -> list[Metric]:
    found = []
    if candidate_us:
        found.append(metric("call_us", candidate_us, "timing"))
    elif running:
        found.append(metric("call_us", 1e6 * running.seconds, "profiling run"))
    if candidate_us and window_us:
        found.append(metric("call_overhead_share", min(1.0, window_us / candidate_us), "timing"))
    return found


def _fault_share(running: Running | None, host: HostReport) -> list[Metric]:
    """The part of a call's processor time that faults take: their number times what one costs here."""
    if running is None:
        return []
    cost = host.ceilings.page_fault_us or _PAGE_FAULT_US
    processor_us = 1e6 * max(running.usage.processor_seconds, 1e-9)
    return [metric("page_fault_share", min(1.0, running.usage.minor_faults * cost / processor_us), "model")]


def _loop_metrics(hot: Sequence[AnalysedLoop]) -> list[Metric]:
    """Those of the hottest loop."""
    if not hot:
        return []
    loop = hot[0]
    counts = ("instructions", "fma", "div_sqrt", "loads", "stores", "nt_stores", "calls", "vector_math_calls", "spills")
    found = [metric(f"hot_loop_{name}", loop.mix[name], "disassembly") for name in counts]
    found += [
        metric("hot_loop_vector_bits", loop.bits, "disassembly"),
        metric("hot_loop_strided_loads", loop.access.strided, "disassembly"),
        metric("hot_loop_indirect_loads", loop.access.indirect, "disassembly"),
        metric("hot_loop_recurrence_cycles", loop.recurrence, "model"),
        metric("hot_loop_throughput_cycles", loop.throughput, "model"),
        metric("latency_chain_ratio", loop.latency_chain_ratio, "llvm-mca" if loop.prediction else "model"),
    ]
    if loop.prediction:
        found.append(metric("hot_loop_predicted_cycles", loop.prediction.cycles, "llvm-mca"))
    if loop.share is not None:
        found.append(metric("hot_loop_share", loop.share, "samples"))
    return found
