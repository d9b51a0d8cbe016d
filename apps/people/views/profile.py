"""Settings › Profile."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django.contrib import messages
from django.contrib.auth.forms import PasswordChangeForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from apps.people import account
from apps.people.asking import person_who_may
from apps.people.forms import ProfileForm
from apps.people.models import Person
from apps.people.permissions import Action


def settings_root(request: HttpRequest) -> HttpResponse:
    """To the first tab."""
    person_who_may(request, Action.KEEP_ACCOUNT)
    return redirect("settings-profile")


def profile(request: HttpRequest) -> HttpResponse:
    """What a person says of themselves, and their password."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    if request.method != "POST":
        return profile_page(request, person)
    before = person.email
    form = ProfileForm(request.POST, instance=Person.objects.get(pk=person.pk))
    if not form.is_valid():
        return profile_page(request, person, form=form)
    account.change_profile(form, before)
    messages.success(request, "Saved.", "good")
    return redirect("settings-profile")


def profile_page(
    request: HttpRequest, person: Person, form: ProfileForm | None = None, passwords: Any = None
) -> HttpResponse:
    """The page, with what was wrong where something was."""
    context = {
        "form": form or ProfileForm(instance=person),
        "passwords": passwords or PasswordChangeForm(person),
        "zones": sorted(available_timezones()),
    }
    return render(request, "settings/profile.html", context, status=422 if form or passwords else 200)
