"""Telling people: one call makes the notices and puts into the post what each has chosen, in the caller's transaction."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from apps.notices import choosing
from apps.notices.models import Delivery, Kind, Notice, Way, Webhook
from apps.people.models import Person

TASK, QUEUE = "notices.deliver", "reports"

log = logging.getLogger(__name__)


def tell(
    kind: Kind,
    people: Iterable[Person],
    title: str,
    *,
    text: str = "",
    link: str = "",
    by: Person | None = None,
    key: str = "",
) -> list[Notice]:
    """Tell each of the people once; whoever did it (`by`) is not told of their own deed. The notices that are new.

    title: one line. link: a path on this server. key: what makes it the same notice when told again; without one it is new.
    """
    by_id = {person.pk: person for person in people if person.is_active and (by is None or person.pk != by.pk)}
    if not by_id:
        return []
    key = key or secrets.token_hex(12)
    with transaction.atomic():
        told = set(Notice.objects.filter(key=key, person__in=by_id).values_list("person_id", flat=True))
        wanted = choosing.choices_of(by_id.values())
        notices = Notice.objects.bulk_create(
            Notice(
                person=person,
                kind=kind,
                title=" ".join(title.split())[:200],
                text=text,
                link=link[:200],
                key=key,
                shown=wanted[pk][kind, Way.PAGE],
            )
            for pk, person in by_id.items()
            if pk not in told
        )
        if _post(notices, by_id, wanted):
            transaction.on_commit(wake)
    return notices


def _post(notices: list[Notice], people: dict[int, Person], wanted: dict[int, dict[tuple[Kind, Way], bool]]) -> bool:
    """Deliveries by e-mail and webhook; whether there are any."""
    hooks: dict[int, list[Webhook]] = {}
    for hook in Webhook.objects.filter(person__in=people):
        hooks.setdefault(hook.person_id, []).append(hook)
    due: list[Delivery] = []
    for notice in notices:
        mine, kind = wanted[notice.person_id], Kind(notice.kind)
        if mine[kind, Way.EMAIL] and people[notice.person_id].email:
            due.append(Delivery(person_id=notice.person_id, way=Way.EMAIL, notice=notice))
        if mine[kind, Way.WEBHOOK]:
            for hook in hooks.get(notice.person_id, []):
                due.append(Delivery(person_id=notice.person_id, way=Way.WEBHOOK, notice=notice, webhook=hook))
    Delivery.objects.bulk_create(due)
    return bool(due)


def post_letter(person: Person, letter: str, address: str) -> None:
    """Put a letter about the person's account into the post. Its link is made when it is sent, and kept nowhere."""
    Delivery.objects.create(person=person, way=Way.EMAIL, letter=letter, address=address.rstrip("/")[:200])
    transaction.on_commit(wake)


def wake() -> None:
    """Tell the server worker that something is due. Never raises: it looks every few seconds anyway."""
    try:
        current_app.send_task(TASK, queue=QUEUE, retry=False, ignore_result=True, expires=30)
    except (OperationalError, RedisError, OSError) as problem:
        log.info("Deliveries wait for the server worker's next look: %s", problem)


# --- reading ----------------------------------------------------------------------------------------------------


def unread(person_ids: Iterable[int]) -> dict[int, tuple[int, int]]:
    """For each person how many notices they have not read, and the number of the newest one (0 without any)."""
    from django.db.models import Count, Max

    ids = list(person_ids)
    rows = Notice.objects.filter(person__in=ids, shown=True, read_at=None).order_by().values("person_id")
    found = dict.fromkeys(ids, (0, 0))
    for row in rows.annotate(count=Count("pk"), newest=Max("pk")):
        found[row["person_id"]] = (row["count"], row["newest"])
    return found
