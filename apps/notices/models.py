"""Notices, who wants which by which way, webhooks, and deliveries as a queue of rows."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.crypto import salted_hmac


class Kind(models.TextChoices):
    """What people are told of."""

    RUN_ENDED = "run_ended", "A run of mine ended"
    RUN_FAILED = "run_failed", "A run of mine failed"
    REVIEW_ASKED = "review_asked", "A review is asked for"
    COMMENT = "comment", "A comment on what I proposed or reviewed"
    DECISION = "decision", "A decision on what I proposed or reviewed"
    HOST_LOST = "host_lost", "A host is lost"
    SPENDING = "spending", "A spending limit comes near or is reached"


class Way(models.TextChoices):
    """How a notice reaches a person."""

    PAGE = "page", "In the page"
    EMAIL = "email", "E-mail"
    WEBHOOK = "webhook", "Webhook"


class Notice(models.Model):
    """One thing one person is told. `key` makes telling twice the same as telling once."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=16, choices=Kind)
    title = models.CharField(max_length=200)
    text = models.TextField(blank=True)
    link = models.CharField(max_length=200, blank=True, help_text="a path on this server")
    key = models.CharField(max_length=120)
    shown = models.BooleanField(default=True, help_text="whether the person wants it in the page")
    at = models.DateTimeField(default=timezone.now)
    read_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [models.UniqueConstraint(fields=["person", "key"], name="notice_once")]
        indexes: ClassVar = [models.Index(fields=["person", "shown", "read_at"], name="notice_unread")]

    def __str__(self) -> str:
        return self.title


class Choice(models.Model):
    """That a person wants, or does not want, one kind of notice by one way; where there is no row, the default holds."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=16, choices=Kind)
    way = models.CharField(max_length=8, choices=Way)
    wanted = models.BooleanField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["person", "kind", "way"], name="choice_once")]

    def __str__(self) -> str:
        return f"{self.kind} by {self.way}: {self.wanted}"


class Webhook(models.Model):
    """An address that notices are posted to, signed. Private addresses are refused unless an admin allows this one."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="webhooks")
    url = models.CharField(max_length=500)
    salt = models.CharField(max_length=32)
    private_allowed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering: ClassVar = ["id"]

    def __str__(self) -> str:
        return self.url

    @property
    def secret(self) -> str:
        """What signatures are made with: derived from the server's own key, so that the database holds no secret."""
        return salted_hmac("apps.notices.webhook", f"{self.pk}:{self.salt}", algorithm="sha256").hexdigest()


class DeliveryState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    SENT = "sent", "Sent"
    FAILED = "failed", "Given up"


class Delivery(models.Model):
    """One notice (or one letter about an account) on its way to one person. The row is the queue."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    way = models.CharField(max_length=8, choices=Way)
    notice = models.ForeignKey(Notice, null=True, on_delete=models.CASCADE, related_name="deliveries")
    webhook = models.ForeignKey(Webhook, null=True, on_delete=models.CASCADE, related_name="deliveries")
    letter = models.CharField(max_length=12, blank=True, help_text="invitation or password, where it is no notice")
    address = models.CharField(max_length=200, blank=True, help_text="where the person reaches this server")
    state = models.CharField(max_length=8, choices=DeliveryState, default=DeliveryState.WAITING)
    attempt = models.PositiveSmallIntegerField(default=0)
    due_at = models.DateTimeField(default=timezone.now)
    error = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    sent_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["id"]
        verbose_name_plural = "deliveries"
        indexes: ClassVar = [models.Index(fields=["state", "due_at"], name="delivery_due")]

    def __str__(self) -> str:
        return f"{self.way} {self.notice or self.letter}"
