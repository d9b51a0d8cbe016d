"""REST about oneself: who asks, and, in a session, one's own profile and password."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.forms import PasswordChangeForm
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.people import account
from apps.people.api import serializers as shapes
from apps.people.api.asking import AskingViews, ask
from apps.people.api.errors import Complaint
from apps.people.forms import ProfileForm
from apps.people.models import Person
from apps.people.permissions import Action

_THEMES = (("", "as the system"), ("light", "light"), ("dark", "dark"))


class ProfileChange(serializers.Serializer[Any]):
    """What one says of oneself; what is left out stays. `theme` is empty where it follows the system."""

    first_name = serializers.CharField(max_length=150, required=False, allow_blank=True)
    last_name = serializers.CharField(max_length=150, required=False, allow_blank=True)
    email = serializers.EmailField(required=False, allow_blank=True)
    time_zone = serializers.CharField(max_length=64, required=False, allow_blank=True)
    theme = serializers.ChoiceField(choices=_THEMES, required=False)


class PasswordChange(serializers.Serializer[Any]):
    """The password as it is and as it is to be. One's other sessions end with it."""

    old_password = serializers.CharField(trim_whitespace=False, write_only=True)
    new_password = serializers.CharField(trim_whitespace=False, write_only=True)


class MeViews(AskingViews):
    """Who asks. A token can look, and changes nothing: sign in for that."""

    queryset = Person.objects.none()
    pagination_class = None

    @extend_schema(responses=forced_singular_serializer(shapes.MeSerializer))
    def list(self, request: Request) -> Response:
        """The person that the session or the token stands for."""
        return Response(shapes.MeSerializer(self.person).data)

    @extend_schema(request=ProfileChange, responses={200: shapes.MeSerializer, 400: Complaint})
    def change(self, request: Request) -> Response:
        """Change what one says of oneself."""
        ask(self.person, Action.KEEP_ACCOUNT)
        given = self.read(ProfileChange).validated_data
        person = Person.objects.get(pk=self.person.pk)
        if "theme" in given:
            person.theme = given.pop("theme")
            person.save(update_fields=["theme"])
        now = {name: getattr(person, name) for name in ProfileForm.Meta.fields}
        form = ProfileForm(now | given, instance=person)
        _check(form)
        account.change_profile(form, now["email"])
        return Response(shapes.MeSerializer(_as_asked(person, self.person)).data)

    @extend_schema(request=PasswordChange, responses={204: None, 400: Complaint})
    def password(self, request: Request) -> Response:
        """Change one's password."""
        ask(self.person, Action.KEEP_ACCOUNT)
        given = self.read(PasswordChange).validated_data
        new = given["new_password"]
        form: Any = PasswordChangeForm(
            self.person, {"old_password": given["old_password"], "new_password1": new, "new_password2": new}
        )
        _check(form, {"new_password1": "new_password", "new_password2": "new_password"})
        account.change_password(request._request, self.person, form)
        return Response(status=204)


def _as_asked(now: Person, asking: Person) -> Person:
    now.scopes = asking.scopes
    return now


def _check(form: Any, names: dict[str, str] | None = None) -> None:
    """Raise `ValidationError` with the form's own words where it is not valid."""
    if not form.is_valid():
        named = names or {}
        raise serializers.ValidationError(
            {named.get(name, name): list(map(str, said)) for name, said in form.errors.items()}
        )
