"""Hosts as their pages show them: what they are, whether they are there, what they are doing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Prefetch

from apps.hosts.models import ELSEWHERE, LIVE_JOB_STATES, Device, Host, Job, JobState
from apps.hosts.queries import jobs_in
from apps.kernels.machine import HostReport
from apps.kernels.plain import BadPlain

QUEUE_SHOWN = 50


@dataclass(frozen=True)
class HostChip:
    """A host's state as a chip: idle, judging, draining, drained or offline, with a sign, a tone, and why."""

    word: str
    sign: str
    tone: str
    why: str
    beats: bool = False


@dataclass(frozen=True)
class HostRow:
    """One host of the list."""

    host: Host
    report: HostReport | None
    chip: HostChip
    now: Sequence[Job]
    waiting: int
    devices: Sequence[Device]


@dataclass(frozen=True)
class BandwidthTable:
    """Measured GB/s: a row for each mix, a column for each working set, with all threads."""

    working_sets: tuple[int, ...]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]
    threads: int


def report_of(host: Host) -> HostReport | None:
    """The host's report; None before the first, or where an older station wrote it in another shape."""
    try:
        return host.facts
    except BadPlain:
        return None


def rows(hosts: Sequence[Host] | None = None) -> list[HostRow]:
    """Rows of all hosts, with what they are doing now, in a handful of queries."""
    running = Job.objects.filter(state__in=[JobState.RUNNING, JobState.SENT]).defer("request", "result").order_by("id")
    devices = Device.objects.filter(retired=False).annotate(waiting=jobs_in(JobState.WAITING))
    devices = devices.prefetch_related(Prefetch("jobs", queryset=running, to_attr="now"))
    found = Host.objects.exclude(name=ELSEWHERE).prefetch_related(
        Prefetch("devices", queryset=devices, to_attr="shown")
    )
    if hosts is not None:
        found = found.filter(pk__in=[host.pk for host in hosts])
    return [_row(host) for host in found]


def _row(host: Host) -> HostRow:
    devices: list[Device] = getattr(host, "shown", [])
    now = [job for device in devices for job in getattr(device, "now", [])]
    waiting = sum(getattr(device, "waiting", 0) for device in devices)
    return HostRow(host, report_of(host), _chip(host, bool(now)), now, waiting, devices)


def _chip(host: Host, busy: bool) -> HostChip:
    if not host.is_online():
        return HostChip("offline", "✕", "bad", "its station has not been heard for 30 s: start it there")
    if not host.enabled and busy:
        return HostChip("draining", "◐", "warn", "what runs there ends, nothing new is sent")
    if not host.enabled:
        return HostChip("drained", "‖", "warn", "nothing is sent until it is enabled")
    if busy:
        return HostChip("judging", "●", "run", "", beats=True)
    return HostChip("idle", "✓", "good", "online, nothing to judge")


def bandwidth_table(report: HostReport) -> BandwidthTable | None:
    """The measured bandwidths, or None where none were."""
    threads = max((row.threads for row in report.ceilings.bandwidth), default=0)
    measured = [row for row in report.ceilings.bandwidth if row.threads == threads]
    if not measured:
        return None
    sets = tuple(sorted({row.working_set_bytes for row in measured}))
    mixes = dict.fromkeys(row.mix for row in measured)
    value = {(row.mix, row.working_set_bytes): row.gbytes_per_s for row in measured}
    return BandwidthTable(sets, tuple((mix, tuple(value.get((mix, size)) for size in sets)) for mix in mixes), threads)


def roof_data(report: HostReport) -> dict[str, object] | None:
    """The roofs for the chart: peak arithmetic, and the best bandwidth out of main memory."""
    peak = report.ceilings.peak_gflops.get("fp32_all") or max(report.ceilings.peak_gflops.values(), default=0.0)
    largest = max((row.working_set_bytes for row in report.ceilings.bandwidth), default=0)
    bandwidth = max(
        (row.gbytes_per_s for row in report.ceilings.bandwidth if row.working_set_bytes == largest), default=0.0
    )
    return {"peak_gflops": peak, "bandwidth": bandwidth, "points": []} if peak and bandwidth else None


def queue(host: Host) -> list[Job]:
    """What is running and waiting on a host, in the order it will be done."""
    jobs = Job.objects.filter(device__host=host, state__in=LIVE_JOB_STATES).select_related("device__host")
    jobs = jobs.defer("request", "result")
    order = {JobState.RUNNING: 0, JobState.SENT: 1, JobState.WAITING: 2}
    return sorted(jobs[:QUEUE_SHOWN], key=lambda job: (order[JobState(job.state)], -job.priority, job.pk))
