"""Hosts as they introduce themselves, and what people decide about them."""

from __future__ import annotations

import logging

from django.db import transaction
from django.utils import timezone

from apps.hosts import jobs, outgoing
from apps.hosts.models import Device, Host, JobKind
from apps.hosts.signals import host_reported
from apps.kernels.machine import HostReport
from apps.kernels.plain import to_plain
from apps.people import audit
from apps.people.models import Person

_MEASURE_PRIORITY = 9  # before any judgement: without ceilings a profile says little

log = logging.getLogger(__name__)


def register(name: str, station: str, report: HostReport) -> bool:
    """A station said what its host is. The host joins, or is what it says now; devices it no longer has are retired.

    Whether another station process than before speaks for the host.
    """
    with transaction.atomic():
        host, is_new = Host.objects.get_or_create(name=name)
        succeeds = host.station != station
        Host.objects.filter(pk=host.pk).update(station=station, seen_at=timezone.now())
        host.refresh_from_db()
        keep_report(host, report)
        if is_new:
            log.info("Host %s has joined", name)
        if not report.ceilings.bandwidth:
            measure(host)
        for device in host.devices.filter(retired=False):
            outgoing.nudge_on_commit(device.pk)
    return succeeds


def keep_report(host: Host, report: HostReport) -> None:
    """What the host is from now on, and its devices."""
    Host.objects.filter(pk=host.pk).update(report=to_plain(report), reported_at=timezone.now())
    for device in report.devices:
        Device.objects.update_or_create(
            host=host,
            name=device.name,
            defaults={
                "kind": device.kind,
                "model": device.model[:120],
                "memory_bytes": device.memory_bytes,
                "languages": list(device.languages),
                "retired": False,
            },
        )
    host.devices.exclude(name__in=[device.name for device in report.devices]).update(retired=True)
    host.refresh_from_db()
    host_reported.send(sender=Host, host=host)


def measure(host: Host, person: Person | None = None) -> None:
    """Have the host measure its ceilings, unless it is about to."""
    device = host.devices.filter(retired=False).order_by("kind").first()
    if device is None:
        return
    if host_is_measuring(host):
        return
    stamp = timezone.now().strftime("%Y%m%d%H%M%S%f")
    jobs.submit(
        key=f"measure:{host.name}:{stamp}",
        kind=JobKind.MEASURE,
        device=device,
        request={},
        origin=f"measuring {host.name}",
        priority=_MEASURE_PRIORITY,
        owner=person,
    )


def host_is_measuring(host: Host) -> bool:
    """Whether a measurement of the host waits or is under way."""
    live = (*jobs.ON_A_STATION, "waiting")
    return host.devices.filter(jobs__kind=JobKind.MEASURE, jobs__state__in=live).exists()


def drain(host: Host, by: Person | None = None) -> None:
    """Send the host nothing new; what it is doing ends."""
    with transaction.atomic():
        if Host.objects.filter(pk=host.pk, enabled=True).update(enabled=False):
            audit.record("host.drained", by, f"host {host.name}")


def enable(host: Host, by: Person | None = None) -> None:
    """Let the host take jobs again."""
    with transaction.atomic():
        if Host.objects.filter(pk=host.pk, enabled=False).update(enabled=True):
            audit.record("host.enabled", by, f"host {host.name}")
        for device in host.devices.filter(retired=False):
            outgoing.nudge_on_commit(device.pk)


def allow_weak_isolation(host: Host, person: Person) -> None:
    """Let candidates run on a host that isolates less than it requires. Who allowed it is kept, and shown on its page."""
    with transaction.atomic():
        Host.objects.filter(pk=host.pk).update(weak_isolation_allowed_by=person)
        level = host.facts.isolation_level if host.facts else "unknown"
        audit.record("host.weak_isolation_allowed", person, f"host {host.name}", detail=f"its isolation is {level}")


def forbid_weak_isolation(host: Host, person: Person | None = None) -> None:
    """Take that back."""
    with transaction.atomic():
        if (
            Host.objects.filter(pk=host.pk)
            .exclude(weak_isolation_allowed_by=None)
            .update(weak_isolation_allowed_by=None)
        ):
            audit.record("host.weak_isolation_forbidden", person, f"host {host.name}")
