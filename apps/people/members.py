"""The team: invited, given a role, deactivated, let in again. The last admin stays one."""

from __future__ import annotations

import re

from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.urls import reverse
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from apps.people import audit, sessions
from apps.people.models import Person, Role, Token
from apps.people.refusals import Refused

_NAME = re.compile(r"[\w.@+-]{1,150}")


def invite(by: Person, username: str, role: str, *, email: str = "", full_name: str = "") -> Person:
    """A new member without a password; `password_link` lets them choose one. Raises `Refused`."""
    username, email = username.strip(), email.strip()
    if not _NAME.fullmatch(username):
        raise Refused("A user name has letters, digits and . @ + - _, at most 150 of them.", "username")
    if Person.objects.filter(username__iexact=username).exists():
        raise Refused(f"There is a member {username} already.", "username")
    if email and Person.objects.filter(email__iexact=email).exists():
        raise Refused(f"{email} belongs to another member.", "email")
    first, _, last = full_name.strip().partition(" ")
    with transaction.atomic():
        person = Person(username=username, email=email, first_name=first[:150], last_name=last[:150], role=_role(role))
        person.set_unusable_password()
        person.save()
        audit.record("member.invited", by, username, detail=f"as {person.get_role_display().lower()}")
    return person


def password_link(person: Person) -> str:
    """A path at which the person may choose a password, once, within three days. Using it makes it void."""
    key = urlsafe_base64_encode(force_bytes(person.pk))
    return reverse("choose-password", args=[key, default_token_generator.make_token(person)])


def reset_by_admin(by: Person, person: Person) -> None:
    """Note that an admin had a link made with which the person may choose a new password. Raises `Refused`."""
    if not person.is_active:
        raise Refused(f"{person} is deactivated. Let them in again first.")
    audit.record("password.link_made", by, person.username)


def set_role(by: Person, person: Person, role: str) -> None:
    """Give a member another role. Raises `Refused` where the team would be left without an admin."""
    wanted = _role(role)
    with transaction.atomic():
        before = _locked(person)
        if before.role == wanted:
            return
        if before.role == Role.ADMIN:
            _keep_an_admin(before, "give them another role")
        Person.objects.filter(pk=person.pk).update(role=wanted)
        words = f"{Role(before.role).label.lower()} → {wanted.label.lower()}"
        audit.record("member.role_changed", by, before.username, detail=words)
    person.role = wanted


def deactivate(by: Person, person: Person) -> None:
    """The member can't sign in any more and their tokens are revoked; what they did stays. Raises `Refused`."""
    with transaction.atomic():
        before = _locked(person)
        if not before.is_active:
            return
        if before.role == Role.ADMIN:
            _keep_an_admin(before, "deactivate them")
        Person.objects.filter(pk=person.pk).update(is_active=False)
        Token.objects.filter(person=person, revoked_at=None).update(revoked_at=timezone.now())
        sessions.end_all(person, by)
        audit.record("member.deactivated", by, before.username)
    person.is_active = False


def reactivate(by: Person, person: Person) -> None:
    """Let a member in again, with the role and password they had."""
    with transaction.atomic():
        if Person.objects.filter(pk=person.pk, is_active=False).update(is_active=True):
            audit.record("member.reactivated", by, person.username)
    person.is_active = True


def _role(word: str) -> Role:
    if word not in Role.values:
        raise Refused(f"There is no role {word!r}. Choose one of {', '.join(Role.values)}.", "role")
    return Role(word)


def _locked(person: Person) -> Person:
    """The person as they are now; all admins stay as they are until the transaction ends."""
    list(Person.objects.select_for_update().filter(role=Role.ADMIN).order_by("pk"))
    return Person.objects.select_for_update().get(pk=person.pk)


def _keep_an_admin(leaving: Person, verb: str) -> None:
    """Someone who was invited and has never chosen a password can't stand in."""
    others = Person.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=leaving.pk)
    if not any(person.has_usable_password() for person in others):
        raise Refused(f"{leaving} is the only admin who can sign in. Make somebody else an admin before you {verb}.")
