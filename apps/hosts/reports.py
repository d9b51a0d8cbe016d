"""Takes in what stations report. Each report about a job takes effect once and only for its present attempt."""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction
from django.utils import timezone

from apps.hosts import bell, jobs, lost, outgoing, registry
from apps.hosts.models import Host, Job, JobKind, JobState
from apps.kernels.evaluation import Evaluation, Progress
from apps.kernels.facts import ProblemFacts
from apps.kernels.machine import HostReport
from apps.kernels.plain import BadPlain, Plain, from_plain
from apps.station.messages import Doing, Report, ReportKind

RESULTS: dict[str, type] = {
    JobKind.EVALUATE: Evaluation,
    JobKind.INSPECT: ProblemFacts,
    JobKind.MEASURE: HostReport,
}

log = logging.getLogger(__name__)


def take(report: Report, up_since: datetime | None = None) -> bool:
    """Let a report take effect; whether it did. `up_since` is since when losses count (see `lost`)."""
    if report.kind is ReportKind.HELLO:
        facts = from_plain(HostReport, report.payload)
        with transaction.atomic():
            if registry.register(report.host, report.station, facts):
                lost.forget_station(report.host, up_since)
        return True
    if report.kind is ReportKind.ALIVE:
        return _alive(report)
    if report.kind is ReportKind.STARTED:
        return _ours(report) and jobs.mark_running(report.job, report.attempt, report.n, timezone.now())
    if report.kind is ReportKind.PROGRESS:
        return _ours(report) and _progress(report)
    return _over(report, up_since)


def _alive(report: Report) -> bool:
    now = timezone.now()
    host = Host.objects.filter(name=report.host).first()
    if host is None or (host.station != report.station and not host.is_online(now)):
        outgoing.introduce(report.host)
        return False
    if host.station != report.station:
        return False  # a station that another one has succeeded
    came_back = not host.is_online(now)
    Host.objects.filter(pk=host.pk, station=report.station).update(seen_at=now)
    for doing in from_plain(tuple[Doing, ...], report.payload):
        present = Job.objects.filter(
            pk=doing.job, attempt=doing.attempt, state__in=jobs.ON_A_STATION, device__host=host
        )
        if not present.update(heard_at=now, in_jail=doing.in_jail):
            outgoing.cancel(host.name, doing.job, doing.attempt)  # it has missed that this is no longer wanted
    if came_back:
        for device in host.devices.filter(retired=False):
            outgoing.nudge(device.pk)
    return True


def _ours(report: Report) -> bool:
    """Whether the report is about the present attempt of a job that still goes on. Otherwise its station is told."""
    present = Job.objects.filter(pk=report.job, attempt=report.attempt, device__host__name=report.host)
    if present.filter(state__in=jobs.ON_A_STATION).exists():
        return True
    outgoing.cancel(report.host, report.job, report.attempt)
    return False


def _progress(report: Report) -> bool:
    changes: dict[str, object] = {"heard_n": report.n, "heard_at": timezone.now(), "in_jail": report.in_jail}
    if report.payload is not None:
        progress = from_plain(Progress, report.payload)
        changes |= {"stage": progress.stage[:40], "message": progress.message[:300], "fraction": progress.fraction}
    # A "started" that comes late says nothing new: who reports progress has begun.
    now = timezone.now()
    Job.objects.filter(pk=report.job, attempt=report.attempt, state=JobState.SENT, heard_n__lt=report.n).update(
        state=JobState.RUNNING, started_at=now
    )
    present = Job.objects.filter(pk=report.job, attempt=report.attempt, state=JobState.RUNNING, heard_n__lt=report.n)
    if not present.update(**changes):
        return False
    bell.ring_on_commit(report.job)
    return True


def _over(report: Report, up_since: datetime | None) -> bool:
    job = Job.objects.select_related("device__host").filter(pk=report.job, device__host__name=report.host).first()
    if job is None or job.is_over or job.attempt != report.attempt:
        return False
    if report.kind is ReportKind.DONE:
        return _done(job, report)
    error = _error(report.payload)
    if report.kind is ReportKind.FAILED:
        with transaction.atomic():
            ended = jobs.end(job, JobState.FAILED, error=error, n=report.n)
            if ended:
                lost.note(job, f"Could not do {job.origin or job.key}: {error}")
        return ended
    if report.kind is ReportKind.BROKE:
        job.in_jail = report.in_jail
        return lost.lose(job, error, counts=_counts(report.payload))
    # Cancelled, though this attempt is still wanted: its station was told so by mistake. It goes again.
    return lost.lose(job, "its station was told to drop it", counts=False)


def _done(job: Job, report: Report) -> bool:
    try:
        result: object = from_plain(RESULTS[job.kind], report.payload)
    except BadPlain as problem:
        error = f"{job.device} sent a result that can't be read; is its station of this version? {problem}"
        return jobs.end(job, JobState.FAILED, error=error, n=report.n)
    with transaction.atomic():
        ended = jobs.end(job, JobState.DONE, result=report.payload, n=report.n)
        if ended and isinstance(result, HostReport):
            registry.keep_report(job.device.host, result)
    return ended


def _counts(payload: Plain) -> bool:
    """A station that was told to stop took nothing down by accident."""
    return bool(payload.get("counts", True)) if isinstance(payload, dict) else True


def _error(payload: Plain) -> str:
    return str(payload.get("error", "")) if isinstance(payload, dict) else ""
