"""Tokens: made, found by what a request brings, revoked. The token itself is shown once and never kept."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.people import audit
from apps.people.models import Person, Scope, Token
from apps.people.permissions import ROLES, SCOPES
from apps.people.refusals import Refused

# Secret scanners know a leaked token by its beginning.
BEGINNING = "pragma_"
LIFETIMES = (7, 30, 90, 365)  # days
MOST = 50
_SHOWN = len(BEGINNING) + 5
_USE_NOTED_EVERY = timedelta(minutes=1)  # a token used a hundred times a second must not be written as often


def scopes_of_role(person: Person) -> list[Scope]:
    """The scopes that mean something for what the person's role allows."""
    return [scope for scope in Scope if any(person.role in ROLES[action] for action, s in SCOPES.items() if s is scope)]


def make(person: Person, name: str, scopes: Iterable[str], days: int) -> tuple[Token, str]:
    """A token of that name, and its text, which is not to be had again. Raises `Refused`."""
    name = name.strip()
    if not name or len(name) > 80:
        raise Refused("Name the token after what will use it, in at most 80 characters.", "name")
    if days not in LIFETIMES:
        raise Refused(f"A token is good for {', '.join(map(str, LIFETIMES))} days.", "days")
    wanted = set(scopes) | {Scope.READ.value}
    if beyond := wanted - {scope.value for scope in scopes_of_role(person)}:
        raise Refused(f"Your role can't give a token the scope {sorted(beyond)[0]}.", "scopes")
    now = timezone.now()
    if Token.objects.filter(person=person, revoked_at=None, expires_at__gt=now).count() >= MOST:
        raise Refused(f"You have {MOST} tokens. Revoke one that nothing uses any more.", "name")
    text = BEGINNING + secrets.token_urlsafe(32)
    with transaction.atomic():
        token = Token.objects.create(
            person=person,
            name=name,
            prefix=text[:_SHOWN],
            digest=_digest(text),
            scopes=[scope.value for scope in Scope if scope.value in wanted],
            expires_at=now + timedelta(days=days),
        )
        audit.record("token.made", person, f"token {name}", detail=f"{', '.join(token.scopes)}; {days} days")
    return token, text


def find(text: str) -> Token | None:
    """The token with that text if it is good and its person active. Its use is noted."""
    if not text.startswith(BEGINNING) or len(text) > 200:
        return None
    token = Token.objects.select_related("person").filter(digest=_digest(text), person__is_active=True).first()
    now = timezone.now()
    if token is None or not token.is_good(now):
        return None
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _USE_NOTED_EVERY)
    Token.objects.filter(stale, pk=token.pk).update(last_used_at=now, last_used_from=audit.origin().address)
    return token


def bearer(header: str) -> str | None:
    """The token in an Authorization header, `Bearer TOKEN` or `Token TOKEN`; None where it holds something else."""
    scheme, _, text = header.partition(" ")
    return text.strip() if scheme.lower() in ("bearer", "token") else None


def person_of(text: str) -> Person | None:
    """Whom a good token stands for, with no more rights than its scopes; the audit log learns by which token they came."""
    token = find(text)
    if token is None:
        return None
    token.person.scopes = frozenset(token.scopes)
    token.person.came_by = f"token {token.name}"
    audit.came_through(token.person.came_by)
    return token.person


def revoke(token: Token, by: Person) -> None:
    """From now on it opens nothing. Revoking one that is revoked changes nothing."""
    with transaction.atomic():
        if Token.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=timezone.now()):
            whose = "" if token.person_id == by.pk else f" of {token.person}"
            audit.record("token.revoked", by, f"token {token.name}{whose}")


def _digest(text: str) -> str:
    """A token has 256 random bits, so that a plain digest can't be turned back."""
    return hashlib.sha256(text.encode()).hexdigest()
