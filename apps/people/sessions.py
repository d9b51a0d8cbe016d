"""Where a person is signed in: each browser session of theirs, which they can end.

Kept is what one needs to tell them apart: the browser's name, when, and the network address it was last seen from.
"""

from __future__ import annotations

import re
import time

from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import QuerySet
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from apps.people import audit
from apps.people.models import Person, SignedIn

SEEN_EVERY = 300  # seconds; a page asks more often than is worth writing down
_SEEN = "seen"
# The first that matches: most browsers say that they are several.
_BROWSERS = (
    (r"Edg[A-Za-z]*/", "Edge"),
    (r"OPR/", "Opera"),
    (r"Firefox/|FxiOS/", "Firefox"),
    (r"Chrom(e|ium)/|CriOS/|HeadlessChrome/", "Chrome"),
    (r"Version/.*Safari/", "Safari"),
)
_SYSTEMS = (
    (r"Android", "Android"),
    (r"iPhone|iPad", "iOS"),
    (r"Windows", "Windows"),
    (r"Mac OS X|Macintosh", "macOS"),
    (r"CrOS", "ChromeOS"),
    (r"Linux", "Linux"),
)


def browser_of(user_agent: str) -> str:
    """`Firefox on Linux`, from what a browser says of itself; `another program` where it says nothing known."""
    named = next((name for pattern, name in _BROWSERS if re.search(pattern, user_agent)), "")
    system = next((name for pattern, name in _SYSTEMS if re.search(pattern, user_agent)), "")
    return " on ".join(part for part in (named, system) if part) or "another program"


@receiver(user_logged_in)
def _signed_in(request: HttpRequest, user: Person, **_: object) -> None:
    keep(request, user)


def keep(request: HttpRequest, person: Person) -> None:
    """Write down that the request's session is the person's, and when it was seen."""
    key = request.session.session_key
    if key is None or not Session.objects.filter(pk=key).exists():
        return
    now = timezone.now()
    request.session[_SEEN] = time.time()
    SignedIn.objects.update_or_create(
        session_id=key,
        defaults={
            "person": person,
            "browser": browser_of(request.headers.get("User-Agent", "")),
            "address": audit.origin().address or str(request.META.get("REMOTE_ADDR") or "")[:45],
            "seen_at": now,
        },
    )


def seen(request: HttpRequest, person: Person) -> None:
    """The session is in use: written down once in a while."""
    if time.time() - request.session.get(_SEEN, 0) > SEEN_EVERY:
        keep(request, person)


def of(person: Person) -> QuerySet[SignedIn]:
    """The sessions that still hold, the one last seen first."""
    return SignedIn.objects.filter(person=person, session__expire_date__gt=timezone.now()).order_by("-seen_at", "-id")


def end(one: SignedIn, by: Person) -> None:
    """Whoever sits at that browser has to sign in again."""
    with transaction.atomic():
        Session.objects.filter(pk=one.session_id).delete()
        audit.record("session.ended", by, one.person.username, detail=f"{one.browser}, {one.address}")


def end_all(person: Person, by: Person | None, *, but: str | None = None) -> int:
    """End all of a person's sessions except the one with the key `but`; how many ended."""
    found = of(person).exclude(session_id=but) if but else of(person)
    keys = list(found.values_list("session_id", flat=True))
    if not keys:
        return 0
    with transaction.atomic():
        Session.objects.filter(pk__in=keys).delete()
        audit.record("session.ended", by, person.username, detail=f"{len(keys)} of them")
    return len(keys)
