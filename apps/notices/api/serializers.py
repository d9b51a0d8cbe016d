"""What REST shows of notices, and what it takes."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.notices import webhooks
from apps.notices.choosing import Choices
from apps.notices.models import Kind, Notice, Way, Webhook


class NoticeSerializer(serializers.ModelSerializer[Notice]):
    """One notice; `link` is a path on this server."""

    class Meta:
        model = Notice
        fields = ("id", "kind", "title", "text", "link", "at", "read_at")


class ReadUntil(serializers.Serializer[Any]):
    """Which notices to mark as read: those up to this number, or all."""

    until = serializers.IntegerField(default=None, allow_null=True)


class Count(serializers.Serializer[Any]):
    """How many."""

    marked = serializers.IntegerField()


class ChoiceSerializer(serializers.Serializer[Any]):
    """Whether one kind of notice is wanted by one way."""

    kind = serializers.ChoiceField(choices=Kind.choices)
    way = serializers.ChoiceField(choices=Way.choices)
    wanted = serializers.BooleanField()


class Wishes(serializers.Serializer[Any]):
    """Choices; those left out stay."""

    choices = ChoiceSerializer(many=True)

    def as_choices(self) -> Choices:
        """What valid data says."""
        return {(Kind(one["kind"]), Way(one["way"])): one["wanted"] for one in self.validated_data["choices"]}


class WebhookSerializer(serializers.ModelSerializer[Webhook]):
    """One webhook. `trouble` says why nothing is posted there now."""

    trouble = serializers.SerializerMethodField()
    private_allowed = serializers.SerializerMethodField()

    class Meta:
        model = Webhook
        fields = ("id", "url", "secret", "private_allowed", "trouble", "created_at")

    def get_trouble(self, hook: Webhook) -> str:
        """Empty where all is well."""
        return webhooks.trouble(hook)

    def get_private_allowed(self, hook: Webhook) -> bool:
        """Whether an admin lets it lead into a private network."""
        return hook.private_allowed_by_id is not None


class PrivateNetwork(serializers.Serializer[Any]):
    """Whether a webhook may lead into a private network."""

    allowed = serializers.BooleanField()


class NewWebhook(serializers.Serializer[Any]):
    """An address to post notices to."""

    url = serializers.CharField(max_length=500)
