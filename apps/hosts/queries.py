"""What pages show of hosts, in as few queries as there are tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, OuterRef, Prefetch, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.hosts.jobs import ON_A_STATION
from apps.hosts.models import ELSEWHERE, Device, Fault, Host, Job, JobState
from apps.kernels.machine import HostReport
from apps.kernels.plain import BadPlain

FAULTS_SHOWN = 5


@dataclass(frozen=True)
class DeviceView:
    """One device now: the job it has (None while idle) and how many wait for it."""

    device: Device
    job: Job | None
    waiting: int

    @property
    def seconds(self) -> float | None:
        """How long it has been at it."""
        if self.job is None or self.job.started_at is None:
            return None
        return (timezone.now() - self.job.started_at).total_seconds()


@dataclass(frozen=True)
class HostView:
    """One host now. `report` is None before its first word or where it can't be read by this version.

    `state` is online, draining (some device still works), drained or offline.
    """

    host: Host
    report: HostReport | None
    online: bool
    state: str
    seen_at: datetime | None
    devices: tuple[DeviceView, ...]
    faults: tuple[Fault, ...]
    weak_isolation_allowed: bool

    @property
    def waiting(self) -> int:
        """Jobs that wait for any of its devices."""
        return sum(device.waiting for device in self.devices)

    @property
    def needs_permission(self) -> bool:
        """Whether candidates are refused there until an admin allows weak isolation."""
        return self.report is not None and not self.report.isolates_enough and not self.weak_isolation_allowed


def host_views() -> tuple[HostView, ...]:
    """All hosts by name."""
    return tuple(_view(host) for host in _hosts())


def host_view(name: str) -> HostView:
    """One host. Raises `Host.DoesNotExist`."""
    return _view(_hosts().get(name=name))


def jobs_waiting(device: Device) -> list[Job]:
    """A device's queue, the next one first, without the requests' sources."""
    waiting = device.jobs.filter(state=JobState.WAITING).order_by("-priority", "id")
    return list(waiting.defer("request", "result").select_related("owner"))


def why_waiting(job: Job) -> str:
    """Why a job that waits has not gone to its device yet, in words: the host is away or drained, or what it does first."""
    host = job.device.host
    if not host.is_online():
        return f"{host.name} is away: its station was not heard lately; waiting for it"
    if not host.enabled:
        return f"{host.name} is drained and takes nothing new; waiting until it is enabled"
    now = Job.objects.filter(device=job.device, state__in=ON_A_STATION).values_list("origin", flat=True).first()
    sooner = Q(priority__gt=job.priority) | Q(priority=job.priority, pk__lt=job.pk)
    before = Job.objects.filter(sooner, device=job.device, state=JobState.WAITING).count()
    words = f"waiting for {job.device}"
    if now:
        words += f", which is at {now}"
    if before:
        words += f"; {before} {'job goes' if before == 1 else 'jobs go'} first"
    return words


def faults_of(host: Host, limit: int = 50) -> list[Fault]:
    """What went wrong there lately, the latest first."""
    return list(host.faults.select_related("device", "job").order_by("-id")[:limit])


def jobs_in(*states: JobState) -> Coalesce:
    """How many jobs of a device are in one of those states: looked up by the index of its queue, where a join would go
    through every job it ever had."""
    jobs = Job.objects.filter(device=OuterRef("pk"), state__in=states).order_by().values("device")
    return Coalesce(Subquery(jobs.annotate(count=Count("pk")).values("count")), 0)


def _hosts() -> QuerySet[Host]:
    now = Job.objects.filter(state__in=ON_A_STATION).defer("request", "result").select_related("owner")
    devices = Device.objects.filter(retired=False).annotate(waiting=jobs_in(JobState.WAITING))
    devices = devices.prefetch_related(Prefetch("jobs", queryset=now, to_attr="on_station"))
    return (
        Host.objects.exclude(name=ELSEWHERE)
        .select_related("weak_isolation_allowed_by")
        .prefetch_related(Prefetch("devices", queryset=devices, to_attr="shown"))
        .order_by("name")
    )


def _view(host: Host) -> HostView:
    devices = tuple(
        DeviceView(device, next(iter(device.on_station), None), device.waiting)
        for device in host.shown  # type: ignore[attr-defined]
    )
    online = host.is_online()
    return HostView(
        host=host,
        report=_report(host),
        online=online,
        state=_state(host, online, devices),
        seen_at=host.seen_at,
        devices=devices,
        faults=tuple(faults_of(host, FAULTS_SHOWN)),
        weak_isolation_allowed=host.weak_isolation_allowed_by_id is not None,
    )


def _report(host: Host) -> HostReport | None:
    try:
        return host.facts
    except BadPlain:
        return None


def _state(host: Host, online: bool, devices: tuple[DeviceView, ...]) -> str:
    if not online:
        return "offline"
    if host.enabled:
        return "online"
    return "draining" if any(device.job for device in devices) else "drained"
