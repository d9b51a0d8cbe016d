"""Letting old things go. What a person would look for stays: runs, versions and evaluations only go when that is asked for,
and never where a review or an accepted kernel rests on them; the audit log never does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.models import Model, ProtectedError, QuerySet, RestrictedError
from django.utils import timezone

from apps.hosts.models import Fault, Job, JobState
from apps.notices.models import Delivery, DeliveryState, Notice
from apps.people import audit
from apps.people.models import Token
from apps.runs.models import LIVE_RUN_STATES, Exchange, Run

_BATCH = 200  # rows a transaction, so that nobody waits long for the database


@dataclass(frozen=True)
class Retention:
    """How many days each sort is kept; None keeps it for good."""

    sign_ins: int | None = 90
    notices: int | None = 90
    deliveries: int | None = 30
    jobs: int | None = 30
    faults: int | None = 180
    exchanges: int | None = None
    runs: int | None = None


@dataclass(frozen=True)
class Pruned:
    """How many rows of a sort went (or would go), and how many stay though they are old enough, because others need them."""

    what: str
    gone: int
    held: int = 0


Find = Callable[[datetime], QuerySet[Model]]


def _old(model: type[Model], column: str, **more: object) -> Find:
    return lambda before: model._default_manager.filter(**{f"{column}__lt": before}, **more)


_OVER = [JobState.DONE, JobState.FAILED, JobState.CANCELLED]
_SORTS: tuple[tuple[str, str, Find], ...] = (
    ("sign-in attempts", "sign_ins", _old(AccessAttempt, "attempt_time")),
    ("failed sign-ins", "sign_ins", _old(AccessFailureLog, "attempt_time")),
    ("sign-ins as django-axes keeps them", "sign_ins", _old(AccessLog, "attempt_time")),
    ("tokens that expired", "sign_ins", _old(Token, "expires_at")),
    ("deliveries", "deliveries", _old(Delivery, "created_at", state__in=[DeliveryState.SENT, DeliveryState.FAILED])),
    ("notices that were read", "notices", _old(Notice, "read_at")),
    ("jobs of hosts", "jobs", _old(Job, "finished_at", state__in=_OVER)),
    ("faults of hosts", "faults", _old(Fault, "at")),
    ("what models were asked", "exchanges", _old(Exchange, "at")),
)


def prune(retention: Retention, *, dry: bool = False, now: datetime | None = None) -> list[Pruned]:
    """Remove what is older than its retention; with `dry` only count."""
    now = now or timezone.now()
    done = [_go("sessions that expired", Session.objects.filter(expire_date__lt=now), dry)]
    for what, sort, find in _SORTS:
        days = getattr(retention, sort)
        if days is not None:
            done.append(_go(what, find(now - timedelta(days=days)), dry))
    if retention.runs is not None:
        before = now - timedelta(days=retention.runs)
        done.append(_go("runs", Run.objects.exclude(state__in=LIVE_RUN_STATES).filter(finished_at__lt=before), dry))
    gone = ", ".join(f"{one.gone} {one.what}" for one in done if one.gone)
    if gone and not dry:
        audit.record("installation.pruned", None, "old rows", detail=gone)
    return done


def _go(what: str, rows: QuerySet[Model], dry: bool) -> Pruned:
    if dry:
        return Pruned(what, rows.count())
    gone, held = 0, set[object]()
    while keys := list(rows.exclude(pk__in=held).order_by("pk").values_list("pk", flat=True)[:_BATCH]):
        gone_now, held_now = _batch(rows.model, keys)
        gone, held = gone + gone_now, held | held_now
    return Pruned(what, gone, len(held))


def _batch(model: type[Model], keys: list[object]) -> tuple[int, set[object]]:
    """How many went, and those that something else needs."""
    rows = model._default_manager
    try:
        with transaction.atomic():
            rows.filter(pk__in=keys).delete()
        return len(keys), set()
    except (ProtectedError, RestrictedError):
        held = {key for key in keys if not _alone(model, key)}
        return len(keys) - len(held), held


def _alone(model: type[Model], key: object) -> bool:
    try:
        with transaction.atomic():
            model._default_manager.filter(pk=key).delete()
        return True
    except (ProtectedError, RestrictedError):
        return False


def shrink() -> None:
    """Give the space back to the file system; SQLite needs the database for itself meanwhile, PostgreSQL does it by itself."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM")
