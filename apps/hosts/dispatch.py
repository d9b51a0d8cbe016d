"""Hands a device that is free its next job: the most urgent one, the oldest first among equals."""

from __future__ import annotations

from functools import partial

from django.db import transaction
from django.utils import timezone

from apps.hosts import jobs, outgoing
from apps.hosts.models import SILENT_AFTER, Device, Job, JobState
from apps.station.messages import Order


def dispatch(device_id: int) -> Job | None:
    """Send the device its next job if it can take one; the job sent, or None.

    The device's row is locked meanwhile, so that two who look at once don't both find it free.
    """
    with transaction.atomic():
        device = Device.objects.select_for_update().filter(pk=device_id, retired=False).first()
        if device is None or not device.host.enabled or not device.host.is_online():
            return None
        if Job.objects.filter(device=device, state__in=jobs.ON_A_STATION).exists():
            return None
        waiting = Job.objects.filter(device=device, state=JobState.WAITING).order_by("-priority", "id")
        due = waiting.first()
        sent = jobs.mark_sent(due) if due is not None else None
        if sent is not None:
            transaction.on_commit(partial(_send, sent))
    return sent


def dispatch_all() -> list[Job]:
    """The same for every device where something waits."""
    online = Device.objects.filter(host__enabled=True, host__seen_at__gt=timezone.now() - SILENT_AFTER)
    with_work = online.filter(jobs__state=JobState.WAITING).distinct().values_list("pk", flat=True)
    return [job for job in map(dispatch, list(with_work)) if job is not None]


def _send(job: Job) -> None:
    order = Order(
        job=job.pk,
        attempt=job.attempt,
        kind=job.kind,
        device=job.device.name,
        request=job.request,
        deadline_seconds=job.deadline_seconds,
        origin=job.origin,
    )
    if not outgoing.order(job.device.host.name, order):
        Job.objects.filter(pk=job.pk, attempt=job.attempt, state=JobState.SENT).update(state=JobState.WAITING)
