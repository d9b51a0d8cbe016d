"""REST about hosts: what they are, what they are doing, and what people decide about them."""

from __future__ import annotations

from typing import Any

from django.db.models import Prefetch, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from apps.hosts import presentation, registry
from apps.hosts.models import ELSEWHERE, Device, Fault, Host, Job
from apps.people.api.asking import AskingViews, ask
from apps.people.permissions import Action
from apps.runs.api import serializers as shapes


class JobSerializer(serializers.ModelSerializer[Job]):
    """A job of a host's queue, without its sources and results."""

    device = serializers.StringRelatedField[Device]()

    class Meta:
        model = Job
        fields = (
            "id", "kind", "device", "state", "priority", "origin", "attempt", "stage", "message", "fraction",
            "created_at", "started_at",
        )  # fmt: skip


class FaultSerializer(serializers.ModelSerializer[Fault]):
    """Something that went wrong on a host."""

    class Meta:
        model = Fault
        fields = ("id", "at", "what", "job")


class IsolationOrder(serializers.Serializer[Any]):
    """Whether candidates may run there though the host isolates less than it requires."""

    allowed = serializers.BooleanField()


class HostViews(mixins.ListModelMixin, mixins.RetrieveModelMixin, AskingViews):
    """Hosts and their devices."""

    serializer_class = shapes.HostSerializer
    lookup_field = "name"

    def get_queryset(self) -> QuerySet[Host]:
        """All hosts by name."""
        return Host.objects.exclude(name=ELSEWHERE).prefetch_related(
            Prefetch("devices", Device.objects.order_by("name"))
        )

    @extend_schema(request=None, responses=shapes.HostSerializer)
    @action(detail=True, methods=["post"])
    def drain(self, request: Request, name: str) -> Response:
        """Send the host nothing new; what it is doing ends."""
        host = self._operated()
        registry.drain(host, self.person)
        return self._told()

    @extend_schema(request=None, responses=shapes.HostSerializer)
    @action(detail=True, methods=["post"])
    def enable(self, request: Request, name: str) -> Response:
        """Let the host take work again."""
        host = self._operated()
        registry.enable(host, self.person)
        return self._told()

    @extend_schema(request=None, responses=shapes.HostSerializer)
    @action(detail=True, methods=["post"])
    def measure(self, request: Request, name: str) -> Response:
        """Have the host measure its ceilings anew when it is idle."""
        host = self._operated()
        registry.measure(host, self.person)
        return self._told()

    @extend_schema(request=IsolationOrder, responses=shapes.HostSerializer)
    @action(detail=True, methods=["post"])
    def isolation(self, request: Request, name: str) -> Response:
        """Let candidates run there with the isolation it has, or take that back. For admins; it is kept under their name."""
        host = self.get_object()
        ask(self.person, Action.ALLOW_WEAK_ISOLATION, host)
        if self.read(IsolationOrder).validated_data["allowed"]:
            registry.allow_weak_isolation(host, self.person)
        else:
            registry.forbid_weak_isolation(host, self.person)
        return self._told()

    @extend_schema(responses=JobSerializer(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def queue(self, request: Request, name: str) -> Response:
        """What is running and waiting there, in the order it will be done."""
        return Response(JobSerializer(presentation.queue(self.get_object()), many=True).data)

    @extend_schema(responses=FaultSerializer(many=True))
    @action(detail=True, methods=["get"])
    def faults(self, request: Request, name: str) -> Response:
        """What went wrong there, the latest first."""
        page = self.paginate_queryset(Fault.objects.filter(host=self.get_object()).order_by("-id"))
        return self.get_paginated_response(FaultSerializer(page, many=True).data)

    def _operated(self) -> Host:
        host: Host = self.get_object()
        ask(self.person, Action.OPERATE_HOST, host)
        return host

    def _told(self) -> Response:
        return Response(shapes.HostSerializer(self.get_object()).data)
