"""One's own account: what a person says of themselves, and their password."""

from __future__ import annotations

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpRequest

from apps.people import audit, sessions
from apps.people.forms import ProfileForm
from apps.people.models import Person


def change_profile(form: ProfileForm, before: str) -> None:
    """Keep a valid form; `before` is the e-mail address as it was."""
    form.save()
    if form.instance.email != before:
        audit.record("member.email_changed", form.instance, form.instance.username)


def change_password(request: HttpRequest, person: Person, form: PasswordChangeForm) -> None:
    """Keep a valid form. The request's own session goes on, the person's others end."""
    form.save()
    sessions.end_all(person, person, but=request.session.session_key)
    update_session_auth_hash(request, form.user)
    sessions.keep(request, person)
    audit.record("password.changed", person, person.username)
