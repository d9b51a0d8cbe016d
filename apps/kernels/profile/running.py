"""What is measured while the candidate runs: time with all threads and with one, usage, samples, counters."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from apps.kernels.evaluation import Metric, Unavailable
from apps.kernels.host.counters import hardware_counters
from apps.kernels.profile.attribution import Attribution, attribute, read_mappings
from apps.kernels.profile.names import metric
from apps.kernels.profile.pmu import NoCounts, count_events, counter_metrics
from apps.kernels.profile.runner import ProfiledRunner
from apps.kernels.profile.sampling import NoSampling, sampled
from apps.kernels.profile.usage import UsagePerCall, read_usage, usage_per_call

_CHUNKS = 5
_MOST_CALLS = 200_000
_PATIENCE = 4
# What goes to each part of the measuring, of the time that is allowed.
_FOR_TIME, _FOR_ONE_THREAD, _FOR_USAGE, _FOR_SAMPLES, _FOR_COUNTERS = 0.15, 0.2, 0.3, 0.35, 0.3


@dataclass(frozen=True)
class Running:
    """Seconds a call with all threads and with one, the ratio of both, usage, samples, counters.

    One thread's are None where there is but one.
    """

    seconds: float
    seconds_one_thread: float | None
    scaling: float | None
    usage: UsagePerCall
    samples: Attribution | None
    counters: tuple[Metric, ...]
    unavailable: tuple[Unavailable, ...]


def measure_running(runner: ProfiledRunner, cores: int, seconds: float) -> Running:
    """All of it in about `seconds`, more where a call is long. Raises `RunnerGone` or `ProcessLookupError`."""
    missing: list[Unavailable] = []
    one_call = max(runner.call(1), 1e-7)
    per_call = _time_a_call(runner, one_call, seconds * _FOR_TIME)
    alone = scaling = None
    if cores > 1:
        per_call, alone, scaling = _time_by_threads(runner, cores, per_call, seconds * _FOR_ONE_THREAD)
    usage = usage_per_call(runner, _calls_in(seconds * _FOR_USAGE, per_call))
    samples = _samples(runner, per_call, seconds * _FOR_SAMPLES, missing)
    counted = _counters(runner, _calls_in(seconds * _FOR_COUNTERS, per_call), missing)
    return Running(per_call, alone, scaling, usage, samples, counted, tuple(missing))


def running_metrics(running: Running, cores: int) -> tuple[Metric, ...]:
    """Their metrics, but for the time of a call, which the judge may know better."""
    usage = running.usage
    found = [
        metric("parallelism", usage.parallelism, "schedstat"),
        metric("busiest_thread_share", usage.busiest_share, "schedstat"),
        metric("minor_faults_per_call", usage.minor_faults, "/proc stat"),
        metric("system_time_share", usage.system_share, "/proc stat"),
        metric("involuntary_switches_per_call", usage.involuntary_switches, "/proc status"),
    ]
    if running.seconds_one_thread is not None and running.scaling is not None:
        found += [
            metric("call_us_one_thread", 1e6 * running.seconds_one_thread, "profiling run"),
            metric("scaling", running.scaling, "profiling run"),
            metric("parallel_efficiency", running.scaling / cores, "profiling run"),
        ]
    if running.samples is not None and running.samples.total:
        found += [
            metric("own_code_share", running.samples.share_of_libraries(), "samples"),
            metric("math_library_share", running.samples.share_of_mathematics(), "samples"),
            metric("kernel_mode_share", running.samples.share_of_kernel(), "samples"),
        ]
    return (*found, *running.counters)


def _time_a_call(runner: ProfiledRunner, estimate: float, budget: float) -> float:
    """The median over a few chunks of calls: one that was disturbed does not count."""
    calls = _calls_in(budget / _CHUNKS, estimate)
    return statistics.median(runner.call(calls) / calls for _ in range(_CHUNKS))


def _time_by_threads(runner: ProfiledRunner, cores: int, estimate: float, budget: float) -> tuple[float, float, float]:
    """Seconds a call on all cores and on one thread, in turn, and the median of the ratios of neighbours.

    In turn, because a machine's other guests change its memory's speed from one tenth of a second to the next.
    """
    calls = _calls_in(budget / _CHUNKS, estimate)
    pairs = []
    for _ in range(_CHUNKS):
        taken = []
        for threads in (1, cores):
            runner.set_threads(threads)
            runner.call(1)
            taken.append(runner.call(calls) / calls)
        pairs.append(taken)
    alone, together = (statistics.median(column) for column in zip(*pairs, strict=True))
    return together, alone, statistics.median(one / both for one, both in pairs)


def _calls_in(seconds: float, per_call: float) -> int:
    return max(1, min(_MOST_CALLS, round(seconds / per_call)))


def _samples(runner: ProfiledRunner, per_call: float, budget: float, missing: list[Unavailable]) -> Attribution | None:
    """Samples of `budget` seconds of processor time: on a busy machine that takes longer, up to `_PATIENCE` times."""
    try:
        with sampled(runner.pid) as counters:
            before = sum(read_usage(runner.pid).threads.values())
            waited = 0.0
            while waited < _PATIENCE * budget:
                waited += runner.call(_calls_in(budget, per_call))
                if sum(read_usage(runner.pid).threads.values()) - before >= 0.8 * budget:
                    break
    except NoSampling as problem:
        missing.append(Unavailable("samples", str(problem)))
        return None
    if not counters.addresses:
        missing.append(Unavailable("samples", f"{counters.source} gave none in {waited:.2g} s"))
    return attribute(counters.addresses, read_mappings(runner.pid), runner.libraries, runner.pid)


def _counters(runner: ProfiledRunner, calls: int, missing: list[Unavailable]) -> tuple[Metric, ...]:
    available = hardware_counters()
    if not available.available:
        missing.append(Unavailable("hardware counters", available.detail))
        return ()
    try:
        counts = count_events(runner, calls)
    except NoCounts as problem:
        missing.append(Unavailable("hardware counters", str(problem)))
        return ()
    missing += [Unavailable(f"counter {count.event}", count.why) for count in counts if count.value is None]
    return counter_metrics(counts, calls)
