"""Deliveries sent: taken one by one from their rows, tried again with longer and longer pauses, given up in the end.

At least once: a worker that dies after sending and before saying so leaves the row to be taken again.
"""

from __future__ import annotations

import logging
import threading
import time
from datetime import datetime, timedelta

from django.conf import settings
from django.core.mail import EmailMessage
from django.db.models import F
from django.utils import timezone

from apps.notices import letters, webhooks
from apps.notices.models import Delivery, DeliveryState, Way
from apps.people.mail import mail_is_set_up

# After the first try, the second ...: together somewhat more than a day, so that a receiver may be down overnight.
PAUSES = tuple(timedelta(seconds=seconds) for seconds in (10, 60, 300, 1800, 7200, 28800, 57600))
_LEASE = timedelta(minutes=5)
_ROUND_SECONDS = 20.0
_NOT_SET_UP = "No e-mail is set up on this server."

log = logging.getLogger(__name__)
_at_it = threading.Lock()


def deliver_due() -> int:
    """Send what is due, for at most `_ROUND_SECONDS`; how many were tried. One round at a time in each process, so that
    slow receivers keep one of the worker's threads and no more.
    """
    if not _at_it.acquire(blocking=False):
        return 0
    try:
        tried, until = 0, time.monotonic() + _ROUND_SECONDS
        while time.monotonic() < until and (delivery := take(timezone.now())) is not None:
            send(delivery)
            tried += 1
        return tried
    finally:
        _at_it.release()


def take(now: datetime) -> Delivery | None:
    """The delivery that has been due longest, ours for `_LEASE`; None where nothing is due."""
    due = Delivery.objects.filter(state=DeliveryState.WAITING, due_at__lte=now).order_by("due_at", "id")
    for candidate in due[:20]:
        mine = Delivery.objects.filter(pk=candidate.pk, state=DeliveryState.WAITING, attempt=candidate.attempt)
        if mine.filter(due_at__lte=now).update(due_at=now + _LEASE, attempt=F("attempt") + 1):
            return Delivery.objects.select_related("person", "notice__person", "webhook__person").get(pk=candidate.pk)
    return None


def send(delivery: Delivery) -> bool:
    """Try once and write down what came of it; whether it was sent."""
    try:
        if delivery.way == Way.WEBHOOK:
            _post(delivery)
        else:
            _mail(delivery)
    except webhooks.NotTaken as problem:
        _again_later(delivery, str(problem))
        return False
    except Exception as problem:  # mail servers fail in many ways; none may end the round
        log.warning("Delivery %s by %s failed: %s", delivery.pk, delivery.way, type(problem).__name__)
        _again_later(delivery, f"{type(problem).__name__}: {problem}")
        return False
    sent = {"state": DeliveryState.SENT, "sent_at": timezone.now(), "error": ""}
    Delivery.objects.filter(pk=delivery.pk, attempt=delivery.attempt).update(**sent)
    return True


def _again_later(delivery: Delivery, why: str) -> None:
    mine = Delivery.objects.filter(pk=delivery.pk, attempt=delivery.attempt, state=DeliveryState.WAITING)
    if delivery.attempt > len(PAUSES) or why == _NOT_SET_UP:
        mine.update(state=DeliveryState.FAILED, error=why[:300])
    else:
        mine.update(due_at=timezone.now() + PAUSES[delivery.attempt - 1], error=why[:300])


def _post(delivery: Delivery) -> None:
    if delivery.webhook is None or delivery.notice is None:
        raise webhooks.NotTaken("There is nothing to post.")
    webhooks.post(delivery.webhook, webhooks.body_of(delivery.notice, settings.ADDRESS), delivery.pk)


def _mail(delivery: Delivery) -> None:
    if not mail_is_set_up():
        raise webhooks.NotTaken(_NOT_SET_UP)
    person, address = delivery.person, delivery.address or settings.ADDRESS
    if not person.email or not person.is_active:
        raise webhooks.NotTaken(f"{person} has no address to send to.")
    if delivery.notice is not None:
        letter = letters.about(delivery.notice, address)
    else:
        letter = letters.about_account(person, delivery.letter, address)
    EmailMessage(letter.subject, letter.body, settings.MAIL_FROM, [person.email]).send()
