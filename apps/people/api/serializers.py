"""What REST shows of people, tokens and the audit log, and what it takes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.people.models import AuditEntry, Person, Role, SignedIn, Token
from apps.people.tokens import LIFETIMES


class MemberSerializer(serializers.ModelSerializer[Person]):
    """A member. `invited`: has not chosen a password yet."""

    name = serializers.CharField(source="__str__", read_only=True)
    active = serializers.BooleanField(source="is_active", read_only=True)
    invited = serializers.BooleanField(source="is_invited", read_only=True)

    class Meta:
        model = Person
        fields = ("id", "username", "name", "role", "active", "invited", "last_login", "date_joined")


class MeSerializer(MemberSerializer):
    """Who asks, and with which scopes where a token was sent (else null)."""

    scopes = serializers.SerializerMethodField()

    class Meta(MemberSerializer.Meta):
        fields = (*MemberSerializer.Meta.fields, "email", "time_zone", "scopes")  # type: ignore[assignment]

    def get_scopes(self, person: Person) -> list[str] | None:
        """The token's scopes."""
        return sorted(person.scopes) if person.scopes is not None else None


class NewMember(serializers.Serializer[Any]):
    """Whom to invite."""

    username = serializers.CharField(max_length=150)
    role = serializers.ChoiceField(choices=Role.choices, default=Role.ENGINEER)
    email = serializers.EmailField(required=False, default="", allow_blank=True)
    full_name = serializers.CharField(required=False, default="", allow_blank=True, max_length=200)


class MemberChange(serializers.Serializer[Any]):
    """What to change of a member; what is left out stays."""

    role = serializers.ChoiceField(choices=Role.choices, required=False)
    active = serializers.BooleanField(required=False)


class Invited(MemberSerializer):
    """The new member. `link` is where they choose a password, null where it was sent by e-mail; it is told this once."""

    link = serializers.CharField(allow_null=True, read_only=True)

    class Meta(MemberSerializer.Meta):
        fields = (*MemberSerializer.Meta.fields, "link")  # type: ignore[assignment]


class PasswordLink(serializers.Serializer[Any]):
    """Where a member chooses a password; null where it was sent by e-mail. It is told this once."""

    link = serializers.CharField(allow_null=True)


class TokenSerializer(serializers.ModelSerializer[Token]):
    """A token, without its text."""

    good = serializers.BooleanField(source="is_good", read_only=True)

    class Meta:
        model = Token
        fields = (
            "id", "name", "prefix", "scopes", "good", "created_at", "expires_at", "last_used_at", "last_used_from",
            "revoked_at",
        )  # fmt: skip


class SessionSerializer(serializers.ModelSerializer[SignedIn]):
    """A browser in which one is signed in. `here`: it is the one that asks."""

    here = serializers.SerializerMethodField()

    class Meta:
        model = SignedIn
        fields = ("id", "browser", "address", "at", "seen_at", "here")

    def get_here(self, one: SignedIn) -> bool:
        """Whether it is the session of this request."""
        return bool(one.session_id == self.context["request"].session.session_key)


class Ended(serializers.Serializer[Any]):
    """How many sessions were ended."""

    ended = serializers.IntegerField()


class NewToken(serializers.Serializer[Any]):
    """A token to make. `read` is always among the scopes."""

    name = serializers.CharField(max_length=80)
    scopes = serializers.ListField(child=serializers.CharField(), default=list)
    days = serializers.ChoiceField(choices=LIFETIMES, default=90)


class MadeToken(TokenSerializer):
    """The token that was made; `token` is its text, told this once."""

    token = serializers.CharField(read_only=True)

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "token")  # type: ignore[assignment]


class AuditSerializer(serializers.ModelSerializer[AuditEntry]):
    """One entry of the audit log."""

    class Meta:
        model = AuditEntry
        fields = ("id", "at", "who", "kind", "about", "link", "detail", "address", "through")
