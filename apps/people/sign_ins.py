"""Signing in and out as the audit log has it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from axes.signals import user_locked_out
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.utils import timezone

from apps.people import audit
from apps.people.models import AuditEntry, Person

FAILED, LOCKED, RESET_ASKED = "sign_in.failed", "sign_in.locked_out", "password.reset_asked"
# Whoever hammers at the door must not fill the log: django-axes keeps count of all attempts anyway.
_MOST_FAILURES = 20
_WITHIN = timedelta(hours=1)
_UNKNOWN = "unknown name"


@receiver(user_logged_in)
def _signed_in(user: Person, **_: Any) -> None:
    audit.record("sign_in.done", user)


@receiver(user_logged_out)
def _signed_out(user: Person | None, **_: Any) -> None:
    if user is not None:
        audit.record("sign_in.ended", user)


@receiver(user_login_failed)
def _failed(credentials: dict[str, Any], **_: Any) -> None:
    if not often(FAILED, _MOST_FAILURES):
        audit.record(FAILED, None, who=_known(credentials.get("username")))


@receiver(user_locked_out)
def _locked_out(username: str | None = None, **_: Any) -> None:
    if not often(LOCKED, _MOST_FAILURES):
        audit.record(LOCKED, None, who=_known(username))


def often(kind: str, most: int) -> bool:
    """Whether that has come from the present address that many times within an hour."""
    since = timezone.now() - _WITHIN
    return AuditEntry.objects.filter(kind=kind, address=audit.origin().address, at__gte=since).count() >= most


def _known(name: Any) -> str:
    """The name if somebody has it: people type passwords into the wrong field, and those must not be kept."""
    known = isinstance(name, str) and Person.objects.filter(username=name[:150]).exists()
    return str(name) if known else _UNKNOWN
