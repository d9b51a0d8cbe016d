"""Forms about people."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.forms import AuthenticationForm

from apps.people.models import Person, Role
from apps.people.tokens import LIFETIMES


class SignInForm(AuthenticationForm):
    """Name and password, with errors that say what to do."""

    error_messages = {  # noqa: RUF012 - Django declares it so
        "invalid_login": "That name and password don't go together. Check both; capitals count.",
        "inactive": "This account is switched off. Ask an admin of your team.",
    }


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    """What a person says of themselves."""

    time_zone = forms.CharField(required=False, max_length=64)

    class Meta:
        model = Person
        fields = ("first_name", "last_name", "email", "time_zone")

    def clean_time_zone(self) -> str:
        """A name the time zone database knows, or empty for the browser's."""
        zone = str(self.cleaned_data["time_zone"]).strip()
        if zone and zone not in available_timezones():
            raise forms.ValidationError(
                "There is no such time zone. They read like Europe/Lisbon; empty is the browser's."
            )
        return zone

    def clean_email(self) -> str:
        """An address nobody else has: a link to choose a new password goes there."""
        email = str(self.cleaned_data["email"])
        if email and Person.objects.filter(email__iexact=email).exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(f"{email} belongs to another member.")
        return email


class InviteForm(forms.Form):
    """Who is invited."""

    username = forms.CharField(max_length=150, error_messages={"required": "Give the new member a user name."})
    full_name = forms.CharField(required=False, max_length=200)
    email = forms.EmailField(required=False)
    role = forms.ChoiceField(choices=Role.choices, initial=Role.ENGINEER)


class TokenForm(forms.Form):
    """What a token is for. Which scopes may be given depends on the person; `tokens.make` says."""

    name = forms.CharField(max_length=80, error_messages={"required": "Name the token after what will use it."})
    scopes = forms.MultipleChoiceField(required=False, choices=[])
    days = forms.TypedChoiceField(coerce=int, choices=[(days, f"{days} days") for days in LIFETIMES], initial=90)

    def __init__(self, scopes: list[Any], *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["scopes"].choices = [(scope.value, scope.label) for scope in scopes]  # type: ignore[attr-defined]
