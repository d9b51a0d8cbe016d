"""Hosts that have fallen silent: whoever operates hosts is told, once for each silence."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from apps.hosts.models import LIVE_JOB_STATES, Host, Job
from apps.notices.models import Kind, Notice
from apps.notices.telling import tell
from apps.people.models import Person
from apps.people.permissions import Action, may

# A station that is restarted is back within seconds; twice what makes a host offline is no restart.
TOLD_AFTER = timedelta(seconds=60)
_NOT_NEWS = timedelta(hours=1)


def tell_silent(up_since: datetime, now: datetime | None = None) -> list[Host]:
    """Tell of the hosts that fell silent while the server could have heard them; those that were news."""
    now = now or timezone.now()
    if now - up_since < TOLD_AFTER:
        return []
    silent = Host.objects.filter(Q(seen_at__lt=now - TOLD_AFTER) & Q(seen_at__gt=now - _NOT_NEWS), enabled=True)
    return [host for host in silent.defer("report") if _tell(host)]


def _tell(host: Host) -> bool:
    assert host.seen_at is not None
    key = f"host:{host.name}:silent:{host.seen_at:%Y%m%d%H%M%S%f}"
    if Notice.objects.filter(key=key).exists():
        return False
    people = [person for person in Person.objects.filter(is_active=True) if may(person, Action.OPERATE_HOST, host)]
    waiting = Job.objects.filter(device__host=host, state__in=LIVE_JOB_STATES).count()
    text = f"Nothing has been heard of its station since {host.seen_at:%H:%M:%S} UTC."
    if waiting:
        text += f" {waiting} job{'s' * (waiting > 1)} for it wait{'s' * (waiting == 1)}."
    title = f"Host {host.name} is lost"
    return bool(tell(Kind.HOST_LOST, people, title, text=text, link=reverse("host", args=[host.name]), key=key))
