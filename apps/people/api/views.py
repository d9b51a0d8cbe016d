"""REST about people: the team, one's sessions and tokens, the audit log."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.people import mail, members, sessions, tokens
from apps.people.api import serializers as shapes
from apps.people.api.asking import AskingViews, ask
from apps.people.api.errors import Complaint
from apps.people.audit_query import AuditQuery
from apps.people.models import AuditEntry, Person, SignedIn, Token
from apps.people.permissions import Action


class MemberViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, AskingViews):
    """The team: list, look; for admins invite, change, have a link made for a password."""

    serializer_class = shapes.MemberSerializer
    queryset = Person.objects.order_by("username")
    lookup_field = "username"
    lookup_value_regex = r"[\w.@+-]+"

    @extend_schema(request=shapes.NewMember, responses={201: shapes.Invited, 400: Complaint})
    def create(self, request: Request) -> Response:
        """Invite somebody."""
        ask(self.person, Action.MANAGE_MEMBERS)
        fields = self.read(shapes.NewMember).validated_data
        new = members.invite(self.person, fields.pop("username"), fields.pop("role"), **fields)
        told = {**shapes.MemberSerializer(new).data, "link": self._handed_out(new, mail.INVITATION)}
        return Response(told, status=status.HTTP_201_CREATED)

    @extend_schema(request=shapes.MemberChange, responses={200: shapes.MemberSerializer, 409: Complaint})
    def partial_update(self, request: Request, username: str) -> Response:
        """Give a member another role, deactivate them or let them in again."""
        ask(self.person, Action.MANAGE_MEMBERS)
        member = self.get_object()
        change = self.read(shapes.MemberChange).validated_data
        with transaction.atomic():  # all of it, or a refusal and nothing
            if "role" in change:
                members.set_role(self.person, member, change["role"])
            if "active" in change:
                (members.reactivate if change["active"] else members.deactivate)(self.person, member)
        return Response(shapes.MemberSerializer(member).data)

    @extend_schema(request=None, responses={200: shapes.PasswordLink, 409: Complaint})
    @action(detail=True, methods=["post"], url_path="password-link")
    def password_link(self, request: Request, username: str) -> Response:
        """A link at which the member chooses a password."""
        ask(self.person, Action.MANAGE_MEMBERS)
        member = self.get_object()
        members.reset_by_admin(self.person, member)
        return Response({"link": self._handed_out(member, mail.PASSWORD)})

    def _handed_out(self, member: Person, letter: str) -> str | None:
        if mail.send(member, letter, self.request.build_absolute_uri("/")):
            return None
        return self.request.build_absolute_uri(members.password_link(member))


class TokenViews(mixins.ListModelMixin, AskingViews):
    """One's own tokens. A token can't make, see or revoke tokens: sign in for that."""

    looks = Action.KEEP_ACCOUNT
    serializer_class = shapes.TokenSerializer
    queryset = Token.objects.none()

    def get_queryset(self) -> QuerySet[Token]:
        """Those of the person who asks."""
        return Token.objects.filter(person=self.person)

    @extend_schema(request=shapes.NewToken, responses={201: shapes.MadeToken, 400: Complaint})
    def create(self, request: Request) -> Response:
        """Make a token; its text is in the answer and nowhere else."""
        fields = self.read(shapes.NewToken).validated_data
        token, text = tokens.make(self.person, fields["name"], fields["scopes"], fields["days"])
        return Response({**shapes.TokenSerializer(token).data, "token": text}, status=status.HTTP_201_CREATED)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Revoke a token."""
        tokens.revoke(self.get_object(), self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)


class SessionViews(mixins.ListModelMixin, AskingViews):
    """Where one is signed in. A token can't see or end sessions: sign in for that."""

    looks = Action.KEEP_ACCOUNT
    serializer_class = shapes.SessionSerializer
    queryset = SignedIn.objects.none()
    lookup_value_regex = r"\d+"

    def get_queryset(self) -> QuerySet[SignedIn]:
        """Those of the person who asks that still hold."""
        return sessions.of(self.person)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """End one: whoever sits there has to sign in again."""
        sessions.end(self.get_object(), self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses=shapes.Ended)
    @action(detail=False, methods=["post"], url_path="end-others", pagination_class=None)
    def end_others(self, request: Request) -> Response:
        """End all but the one that asks."""
        ended = sessions.end_all(self.person, self.person, but=request.session.session_key)
        return Response({"ended": ended})


_TEXT = [("who", "user name"), ("kind", "area.deed, or a whole area"), ("text", "words, or an address's beginning")]
_DAYS = [("first", "first day, like 2026-01-31"), ("last", "last day")]


class AuditViews(mixins.ListModelMixin, AskingViews):
    """The audit log, newest first. There is no way to change it."""

    looks = Action.READ_AUDIT
    serializer_class = shapes.AuditSerializer
    queryset = AuditEntry.objects.none()

    def get_queryset(self) -> QuerySet[AuditEntry]:
        """What the query asks for."""
        return AuditQuery.read(self.request.query_params).apply(AuditEntry.objects.all())

    @extend_schema(parameters=[OpenApiParameter(name, str, description=about) for name, about in [*_TEXT, *_DAYS]])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Entries, newest first."""
        return super().list(request, *args, **kwargs)
