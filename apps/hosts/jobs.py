"""Jobs: asked for, sent, begun, ended. Each change of state is one conditional update in one transaction.

waiting -> sent -> running -> done | failed | cancelled; from sent and running back to waiting when an attempt is lost.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.hosts import bell, outgoing
from apps.hosts.models import LIVE_JOB_STATES, Device, Job, JobKind, JobState
from apps.hosts.signals import job_over
from apps.kernels.plain import Plain
from apps.people.models import Person

ON_A_STATION = (JobState.SENT, JobState.RUNNING)


def submit(
    *,
    key: str,
    kind: JobKind,
    device: Device,
    request: Plain,
    origin: str = "",
    priority: int = 0,
    owner: Person | None = None,
    deadline_seconds: float = 600.0,
) -> Job:
    """Have `device` do this when it is free. Asked again under the same `key`, the job that is there is returned as it is."""
    job, is_new = Job.objects.get_or_create(
        key=key,
        defaults={
            "kind": kind,
            "device": device,
            "request": request,
            "origin": origin,
            "priority": priority,
            "owner": owner,
            "deadline_seconds": deadline_seconds,
        },
    )
    if is_new:
        outgoing.nudge_on_commit(device.pk)
    return job


def hasten(job_id: int, priority: int) -> None:
    """Let a job that waits go with what has this priority, if it is larger than its own: somebody waits for it now."""
    Job.objects.filter(pk=job_id, state=JobState.WAITING, priority__lt=priority).update(priority=priority)


def cancel(job: Job, reason: str = "") -> bool:
    """End a job that is no longer wanted; its jail is killed where it runs. Whether there was anything to end."""
    with transaction.atomic():
        before = Job.objects.select_for_update().get(pk=job.pk)
        if not end(before, JobState.CANCELLED, error=reason):
            return False
        if before.state in ON_A_STATION:
            host, attempt = before.device.host.name, before.attempt
            transaction.on_commit(lambda: outgoing.cancel(host, job.pk, attempt))
    job.refresh_from_db()
    return True


def end(job: Job, state: JobState, *, result: Plain = None, error: str = "", n: int | None = None) -> bool:
    """End this attempt at the job, if it is still the present one and (with `n`) the report is a new one.

    Listeners of `job_over` write within the same transaction. Whether it took effect.
    """
    with transaction.atomic():
        present = Job.objects.filter(pk=job.pk, attempt=job.attempt, state__in=LIVE_JOB_STATES)
        changes: dict[str, object] = {"state": state, "result": result, "error": error, "in_jail": False}
        if n is not None:
            present = present.filter(heard_n__lt=n)
            changes["heard_n"] = n
        if not present.update(**changes, finished_at=timezone.now()):
            return False
        over = Job.objects.select_related("device__host", "owner").get(pk=job.pk)
        job_over.send(sender=Job, job=over)
        bell.ring_on_commit(job.pk)
        outgoing.nudge_on_commit(over.device_id)
    return True


def mark_sent(job: Job) -> Job | None:
    """Take the job out of the queue for a new attempt, or None if it waits no longer."""
    now = timezone.now()
    waiting = Job.objects.filter(pk=job.pk, state=JobState.WAITING)
    taken = waiting.update(
        state=JobState.SENT,
        attempt=F("attempt") + 1,
        heard_n=0,
        in_jail=False,
        stage="",
        message="",
        fraction=None,
        sent_at=now,
        heard_at=now,
        started_at=None,
    )
    return Job.objects.select_related("device__host").get(pk=job.pk) if taken else None


def mark_running(job_id: int, attempt: int, n: int, now: datetime) -> bool:
    """The station has begun. Whether that was news."""
    present = Job.objects.filter(pk=job_id, attempt=attempt, state=JobState.SENT, heard_n__lt=n)
    if present.update(state=JobState.RUNNING, heard_n=n, started_at=now, heard_at=now):
        bell.ring_on_commit(job_id)
        return True
    return False


def put_back(job: Job) -> bool:
    """Let the job wait again after its present attempt was lost. Whether it was on a station still."""
    present = Job.objects.filter(pk=job.pk, attempt=job.attempt, state__in=ON_A_STATION)
    changed = present.update(state=JobState.WAITING, in_jail=False, stage="", message="", fraction=None)
    if changed:
        bell.ring_on_commit(job.pk)
        outgoing.nudge_on_commit(job.device_id)
    return bool(changed)
