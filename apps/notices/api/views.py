"""REST about one's own notices."""

from __future__ import annotations

from typing import Any

import django_filters
from django.conf import settings
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.helpers import forced_singular_serializer
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.notices import choosing, webhooks
from apps.notices.api import serializers as shapes
from apps.notices.models import Choice, Kind, Notice, Webhook
from apps.people.api.asking import AskingViews, ask
from apps.people.api.errors import Complaint
from apps.people.permissions import Action
from apps.people.refusals import Refused


class NoticeFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Filters of the list of notices."""

    kind = django_filters.MultipleChoiceFilter(choices=Kind.choices)
    unread = django_filters.BooleanFilter(field_name="read_at", lookup_expr="isnull")


class NoticeViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, AskingViews):
    """One's own notices, newest first."""

    lookup_value_regex = r"\d{1,18}"
    serializer_class = shapes.NoticeSerializer
    filterset_class = NoticeFilter
    queryset = Notice.objects.none()

    def get_queryset(self) -> QuerySet[Notice]:
        """Those of the person who asks."""
        return Notice.objects.filter(person=self.person, shown=True)

    @extend_schema(request=None, responses=shapes.NoticeSerializer)
    @action(detail=True, methods=["post"], url_path="read", filterset_class=None)
    def read_one(self, request: Request, pk: str) -> Response:
        """Mark one as read."""
        notice = self.get_object()
        Notice.objects.filter(pk=notice.pk, read_at=None).update(read_at=timezone.now())
        return Response(shapes.NoticeSerializer(self.get_queryset().get(pk=notice.pk)).data)

    @extend_schema(request=shapes.ReadUntil, responses=shapes.Count)
    @action(detail=False, methods=["post"], filterset_class=None)
    def read_all(self, request: Request) -> Response:
        """Mark notices as read."""
        until = self.read(shapes.ReadUntil).validated_data["until"]
        mine = self.get_queryset().filter(read_at=None)
        mine = mine if until is None else mine.filter(pk__lte=until)
        return Response({"marked": mine.update(read_at=timezone.now())})


class WishViews(AskingViews):
    """Which notices one wants by which way. Sign in for that: a token can't change one's account."""

    looks = Action.KEEP_ACCOUNT
    queryset = Choice.objects.none()
    pagination_class = None

    @extend_schema(responses=forced_singular_serializer(shapes.Wishes))
    def list(self, request: Request) -> Response:
        """Every kind by every way."""
        return Response(self._told())

    @extend_schema(request=shapes.Wishes, responses=shapes.Wishes)
    def create(self, request: Request) -> Response:
        """Change some."""
        choosing.choose(self.person, self.read(shapes.Wishes).as_choices())
        return Response(self._told())

    def _told(self) -> dict[str, Any]:
        mine = choosing.choices_of([self.person])[self.person.pk]
        return {"choices": [{"kind": kind, "way": way, "wanted": yes} for (kind, way), yes in mine.items()]}


class WebhookViews(mixins.ListModelMixin, AskingViews):
    """One's own webhooks."""

    looks = Action.KEEP_ACCOUNT
    lookup_value_regex = r"\d{1,12}"
    serializer_class = shapes.WebhookSerializer
    queryset = Webhook.objects.none()

    def get_queryset(self) -> QuerySet[Webhook]:
        """Those of the person who asks."""
        return Webhook.objects.filter(person=self.person)

    @extend_schema(request=shapes.NewWebhook, responses={201: shapes.WebhookSerializer, 400: Complaint})
    def create(self, request: Request) -> Response:
        """Post notices there from now on."""
        hook = webhooks.add(self.person, self.read(shapes.NewWebhook).validated_data["url"])
        return Response(shapes.WebhookSerializer(hook).data, status=status.HTTP_201_CREATED)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        """Post nothing there any more."""
        webhooks.remove(self.get_object(), self.person)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=shapes.PrivateNetwork, responses={200: shapes.WebhookSerializer})
    @action(detail=True, methods=["post"])
    def private(self, request: Request, pk: str) -> Response:
        """Let one lead into a private network, or take that back. An admin may, for anybody's."""
        ask(self.person, Action.ADMINISTER)
        hook = get_object_or_404(Webhook, pk=pk)
        webhooks.allow_private(hook, self.person, allowed=self.read(shapes.PrivateNetwork).validated_data["allowed"])
        return Response({**shapes.WebhookSerializer(hook).data, "secret": None})

    @extend_schema(request=None, responses={204: None, 409: Complaint})
    @action(detail=True, methods=["post"], url_path="try")
    def try_out(self, request: Request, pk: str) -> Response:
        """Post a notice that says it is only a try."""
        try:
            webhooks.try_out(self.get_object(), settings.ADDRESS)
        except webhooks.NotTaken as problem:
            raise Refused(f"It did not take a notice: {problem}") from None
        return Response(status=status.HTTP_204_NO_CONTENT)
