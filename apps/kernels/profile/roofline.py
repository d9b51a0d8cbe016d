"""A call against this machine's roofs: what must be moved and computed, how fast it was done, and how fast it could be.

The model is Williams, Waterman and Patterson's roofline (CACM 52(4), 2009), with compulsory bytes in place of measured
traffic, and a bandwidth roof that knows the kernel's read/write mix and working set (`host.roofs`).
"""

from __future__ import annotations

from dataclasses import dataclass

from apps.kernels.evaluation import Metric, Roofline, RooflinePoint
from apps.kernels.facts import ProblemFacts
from apps.kernels.host.roofs import Roof, bandwidth_roof
from apps.kernels.machine import Ceilings
from apps.kernels.profile.names import metric


@dataclass(frozen=True)
class Work:
    """What any kernel for a problem must do once a call: bytes read, bytes written, operations, and their precision."""

    read_bytes: int
    written_bytes: int
    flops: int | None
    precision: str = "fp32"

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.written_bytes


def work_of(facts: ProblemFacts) -> Work | None:
    """A problem's work, None where its facts do not say what it moves."""
    written = sum(output.bytes for output in facts.outputs)
    named = sum(tensor.bytes for tensor in (*facts.inputs, *facts.parameters)) + written
    total = facts.compulsory_bytes if facts.compulsory_bytes is not None else named
    if total <= 0:
        return None
    double = any(tensor.dtype in ("float64", "complex128") for tensor in (*facts.inputs, *facts.outputs))
    return Work(max(0, total - written), min(written, total), facts.flops, "fp64" if double else "fp32")


@dataclass(frozen=True)
class Placed:
    """A call under its roofs: the chart's data and the metrics."""

    roofline: Roofline | None
    metrics: tuple[Metric, ...]


def place(work: Work, ceilings: Ceilings, threads: int, call_seconds: float, name: str = "candidate") -> Placed:
    """The call on the roofline. Without ceilings there are bytes, FLOPs and rates, and no roofline."""
    bandwidth = work.bytes / call_seconds / 1e9
    arithmetic = (work.flops or 0) / call_seconds / 1e9
    intensity = (work.flops or 0) / work.bytes
    found = [
        metric("compulsory_bytes", work.bytes, "problem"),
        metric("read_bytes", work.read_bytes, "problem"),
        metric("written_bytes", work.written_bytes, "problem"),
        metric("achieved_bandwidth", bandwidth, "compulsory bytes / time"),
    ]
    if work.flops is not None:
        found += [
            metric("flops", work.flops, "problem"),
            metric("intensity", intensity, "problem"),
            metric("achieved_arithmetic", arithmetic, "FLOPs as written / time"),
        ]
    roof = bandwidth_roof(ceilings, work.read_bytes, work.written_bytes, threads)
    plain = bandwidth_roof(ceilings, work.read_bytes, work.written_bytes, threads, streaming=False)
    peak = ceilings.peak_gflops.get(f"{work.precision}_all")
    if roof is None or plain is None or not peak:
        return Placed(None, tuple(found))
    found += _roof_metrics(roof, plain, peak, bandwidth, arithmetic, counted=work.flops is not None)
    # Under the roof of the two that is lower at this intensity, in time: bytes at the bandwidth or FLOPs at the peak.
    least_seconds = max(work.bytes / roof.gbytes_per_s, (work.flops or 0) / peak) / 1e9
    share = least_seconds / call_seconds
    found.append(metric("share_of_roof", share, "ceilings"))
    point = RooflinePoint(name, intensity, arithmetic, bandwidth, share)
    chart = Roofline(peak, roof.gbytes_per_s, roof.mix, roof.working_set_bytes, (point,))
    return Placed(chart, tuple(found))


def _roof_metrics(
    roof: Roof, plain: Roof, peak: float, bandwidth: float, arithmetic: float, *, counted: bool
) -> list[Metric]:
    source = f"ceilings: {roof.mix}, {roof.working_set_bytes >> 10} KiB"
    found = [
        metric("memory_roof", roof.gbytes_per_s, source),
        metric("plain_store_roof", plain.gbytes_per_s, f"ceilings: {plain.mix}, {plain.working_set_bytes >> 10} KiB"),
        metric("arithmetic_peak", peak, "ceilings"),
        metric("ridge", peak / roof.gbytes_per_s, "ceilings"),
        metric("share_of_memory_roof", bandwidth / roof.gbytes_per_s, "ceilings"),
        metric("share_of_plain_store_roof", bandwidth / plain.gbytes_per_s, "ceilings"),
        metric("streaming_gain", roof.gbytes_per_s / plain.gbytes_per_s, "ceilings"),
    ]
    if counted:
        found.append(metric("share_of_arithmetic_peak", arithmetic / peak, "ceilings"))
    return found
