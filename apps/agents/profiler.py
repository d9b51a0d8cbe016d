"""The Profiler's words: what a judgement measured, as comparable metrics and as prose with numbers in it.

The measuring itself is the host's; here an `Evaluation` becomes what the Conductor reasons from and a person reads.
"""

from __future__ import annotations

from dataclasses import replace

from apps.agents.figures import figure
from apps.kernels.evaluation import Evaluation, Metric, Profile, Roofline, SpeedUp, Time, Verdict
from apps.kernels.machine import mix_in_words

# Always there for a correct, timed version. The second is the steadier one to predict and to hold a prediction against:
# it comes of pairs, so that a machine that got slower in between disturbs both sides alike.
TIME = "time"
TIME_OVER_REFERENCE = "time_over_reference"
# The same for whoever computes it: the problem's work, and this machine's roofs for it.
_ROOFS = frozenset({"memory_roof", "plain_store_roof", "arithmetic_peak"})
OF_THE_PROBLEM = _ROOFS | {
    "compulsory_bytes", "read_bytes", "written_bytes", "flops", "intensity", "ridge", "streaming_gain",
}  # fmt: skip
OF_REFERENCE = "reference_"  # begins the names of what was counted of the reference


def metrics(evaluation: Evaluation) -> dict[str, Metric]:
    """Every figure of a version that another version's can be compared with, by name."""
    named = {metric.name: metric for metric in evaluation.profile.metrics}
    if evaluation.verdict is Verdict.CORRECT and evaluation.timing.candidate is not None:
        named[TIME] = Metric(TIME, evaluation.timing.candidate.median_ms, "ms", "timing")
    if evaluation.speedup:
        named[TIME_OVER_REFERENCE] = Metric(TIME_OVER_REFERENCE, 1.0 / evaluation.speedup, "ratio", "timing")
    return named


def reference_metrics(evaluation: Evaluation) -> dict[str, Metric]:
    """The reference's own figures beside those of `metrics`, by the same names; nothing where it was not timed.

    Time and operations are measured. Rates and shares are what the problem's bytes and FLOPs come to in its time, as they are
    for the candidate: what PyTorch moves beyond them makes its share smaller.
    """
    if evaluation.timing.reference is None:
        return {}
    milliseconds = evaluation.timing.reference.median_ms
    known = {metric.name: metric.value for metric in evaluation.profile.metrics}
    named = {
        TIME: Metric(TIME, milliseconds, "ms", "timing"),
        TIME_OVER_REFERENCE: Metric(TIME_OVER_REFERENCE, 1.0, "ratio", "timing"),
    }
    for metric in evaluation.profile.metrics:
        if metric.name in OF_THE_PROBLEM:
            named[metric.name] = metric
        elif metric.name.startswith(OF_REFERENCE):
            own = metric.name.removeprefix(OF_REFERENCE)
            named[own] = replace(metric, name=own)
        elif (value := _derived(metric.name, known, milliseconds / 1e3)) is not None:
            named[metric.name] = replace(metric, value=value)
    return named


def _derived(name: str, known: dict[str, float], seconds: float) -> float | None:
    """A figure that follows from the time of a call, the problem's work and the roofs; None for any other."""
    if name.startswith("share_of_") and not known.keys() >= _ROOFS:
        return None
    bandwidth, arithmetic = (known.get(work, 0.0) / seconds / 1e9 for work in ("compulsory_bytes", "flops"))
    match name:
        case "call_us":
            return 1e6 * seconds
        case "achieved_bandwidth":
            return bandwidth
        case "achieved_arithmetic":
            return arithmetic
        case "share_of_memory_roof":
            return bandwidth / known["memory_roof"]
        case "share_of_plain_store_roof":
            return bandwidth / known["plain_store_roof"]
        case "share_of_arithmetic_peak":
            return arithmetic / known["arithmetic_peak"]
        case "share_of_roof":
            return max(bandwidth / known["memory_roof"], arithmetic / known["arithmetic_peak"])
    return None


def summary(evaluation: Evaluation) -> str:
    """One paragraph: how fast against the reference, how near the roof, what holds it back."""
    said = [_speed(evaluation)]
    if evaluation.profile.roofline is not None:
        said.append(_roof(evaluation.profile.roofline))
    if evaluation.profile.bottleneck is not None:
        said.append(f"Held back by {evaluation.profile.bottleneck.name}.")
    return " ".join(said)


def report(evaluation: Evaluation, best: Evaluation | None = None) -> str:
    """The whole of it, beside the best version's figures where one is given."""
    profile = evaluation.profile
    parts = [summary(evaluation)]
    if evaluation.timing.compiled_reference is not None:
        parts.append(f"torch.compile takes {_time(evaluation.timing.compiled_reference)}.")
    if profile.bottleneck is not None:
        parts.append(profile.bottleneck.explanation)
    parts += _figures(evaluation, best)
    parts += _hot(profile)
    parts += [f"Not measured: {missing.name}. {missing.why}" for missing in profile.unavailable]
    return "\n".join(part for part in parts if part)


def _speed(evaluation: Evaluation) -> str:
    timing = evaluation.timing
    if timing.candidate is None:
        return "It was not timed."
    said = f"It takes {_time(timing.candidate)}"
    if timing.reference is not None:
        said += f", the reference {_time(timing.reference)}"
    if timing.speedup is not None:
        said += f": {_ratio(timing.speedup)}"
    return said + "."


def _time(time: Time) -> str:
    low, high = time.ci95_ms
    return f"{time.median_ms:.4g} ms ({low:.4g} to {high:.4g})"


def _ratio(speedup: SpeedUp) -> str:
    low, high = speedup.ci95
    return f"{speedup.median:.2f}x (95%: {low:.2f} to {high:.2f})"


def _roof(roofline: Roofline) -> str:
    if not roofline.points:
        return f"The roof for {mix_in_words(roofline.mix)} is {roofline.bandwidth_gbytes_per_s:.3g} GB/s."
    point = roofline.points[0]
    said = (
        f"At {point.intensity:.3g} FLOP a byte it moves {point.gbytes_per_s:.3g} GB/s"
        f" of {roofline.bandwidth_gbytes_per_s:.3g} ({mix_in_words(roofline.mix)})"
        f" and computes {point.gflops:.3g} GFLOP/s of {roofline.peak_gflops:.3g}"
    )
    return said + (f", {point.share_of_roof:.0%} of the roof above it." if point.share_of_roof is not None else ".")


def _figures(evaluation: Evaluation, best: Evaluation | None) -> list[str]:
    others = metrics(best) if best is not None else {}
    lines = []
    for metric in evaluation.profile.metrics:
        beside = others.get(metric.name)
        compared = f" (best version: {figure(beside.value, beside.unit)})" if beside is not None else ""
        lines.append(f"{metric.name}: {figure(metric.value, metric.unit)}{compared}, from {metric.source}")
    return lines


def _hot(profile: Profile) -> list[str]:
    lines = [f"{share:.0%} of samples in {symbol}" for symbol, share in profile.symbols[:5]]
    for loop in profile.hot_loops[:3]:
        mix = ", ".join(f"{count} {kind}" for kind, count in sorted(loop.mix.items(), key=lambda item: -item[1]))
        cycles = "" if loop.cycles_per_iteration is None else f", {loop.cycles_per_iteration:.3g} cycles a turn"
        lines.append(f"Hot loop in {loop.symbol}: {mix}{cycles}")
    return [*lines, *profile.remarks[:8]]
