"""Webhooks: made, tried, signed, posted."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import time

import httpx
from django.db import transaction

from apps.notices import addresses
from apps.notices.addresses import BadAddress
from apps.notices.models import Delivery, Kind, Notice, Webhook
from apps.people import audit
from apps.people.models import Person
from apps.people.refusals import Refused

MOST = 5
SECONDS = 10.0
_READ = 2000  # bytes of an answer that are looked at, for the error's first line


class NotTaken(Exception):
    """The other side did not take it; the message says what it said."""


def add(person: Person, url: str) -> Webhook:
    """A webhook of the person's. Raises `Refused`. One that leads into a private network waits for an admin's word."""
    url = url.strip()
    try:
        addresses.read(url)
    except BadAddress as problem:
        raise Refused(str(problem), "url") from None
    with transaction.atomic():
        if Webhook.objects.filter(person=person).count() >= MOST:
            raise Refused(f"You have {MOST} webhooks. Remove one first.", "url")
        hook = Webhook.objects.create(person=person, url=url, salt=secrets.token_hex(16))
        audit.record("webhook.added", person, addresses.read(url).hostname or "")
    return hook


def remove(hook: Webhook, by: Person) -> None:
    """Nothing is posted there any more; what waits is dropped."""
    with transaction.atomic():
        audit.record("webhook.removed", by, addresses.read(hook.url).hostname or "")
        hook.delete()


def allow_private(hook: Webhook, by: Person, *, allowed: bool) -> None:
    """Let this one lead into a private network, or take that back. Who allowed it is kept."""
    with transaction.atomic():
        hook.private_allowed_by = by if allowed else None
        hook.save(update_fields=["private_allowed_by"])
        kind = "webhook.private_allowed" if allowed else "webhook.private_forbidden"
        audit.record(kind, by, f"{hook.url} of {hook.person}"[:200])


def trouble(hook: Webhook) -> str:
    """Why nothing can be posted there as things stand; empty where it can."""
    try:
        addresses.look_up(hook.url, private_allowed=hook.private_allowed_by_id is not None)
    except BadAddress as problem:
        return str(problem)
    return ""


def body_of(notice: Notice, address: str) -> bytes:
    """What is posted (docs/api.md). `address` is where this server is reached."""
    told = {
        "id": notice.pk,
        "kind": notice.kind,
        "title": notice.title,
        "text": notice.text,
        "link": f"{address}{notice.link}" if notice.link else "",
        "at": notice.at.isoformat(),
        "to": notice.person.username,
    }
    return json.dumps(told, separators=(",", ":")).encode()


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """`v1=` and the hex HMAC-SHA-256 of `TIMESTAMP.BODY`. The receiver makes the same and refuses what is minutes old."""
    return "v1=" + hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def post(hook: Webhook, body: bytes, delivery_id: int) -> None:
    """Post it. Raises `NotTaken`, also for a redirect: an allowed address must not lead on to one that isn't."""
    now = int(time.time())
    try:
        target = addresses.look_up(hook.url, private_allowed=hook.private_allowed_by_id is not None)
    except BadAddress as problem:
        raise NotTaken(str(problem)) from None
    headers = {
        "Host": target.host_header,
        "Content-Type": "application/json",
        "User-Agent": "PRAGMA",
        "PRAGMA-Delivery": str(delivery_id),
        "PRAGMA-Timestamp": str(now),
        "PRAGMA-Signature": signature(hook.secret, now, body),
    }
    try:
        with (
            httpx.Client(timeout=SECONDS, follow_redirects=False, trust_env=False) as client,
            client.stream(
                "POST", target.url, content=body, headers=headers, extensions={"sni_hostname": target.host}
            ) as answer,
        ):
            if not answer.is_success:
                said = next(answer.iter_bytes(_READ), b"").decode("utf-8", "replace").strip()
                raise NotTaken(f"HTTP {answer.status_code} {' '.join(said.split())[:120]}".strip())
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as problem:
        raise NotTaken(f"{type(problem).__name__}: {problem}"[:300]) from None


def try_out(hook: Webhook, address: str) -> None:
    """Post a notice that says it is only a try. Raises `NotTaken`."""
    notice = Notice(
        pk=0,
        person=hook.person,
        kind=Kind.RUN_ENDED,
        title="A try: this webhook works",
        link="/settings/notifications/",
    )
    post(hook, body_of(notice, address), 0)


def waiting(hook: Webhook) -> int:
    """How many notices wait for it."""
    return Delivery.objects.filter(webhook=hook, state="waiting").count()
