"""People who sign in, the tokens that act in their name, and the log of who did what."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser, UserManager
from django.contrib.sessions.models import Session
from django.db import models
from django.utils import timezone

from apps.people.append_only import AppendOnly, AppendOnlyRows


class Role(models.TextChoices):
    """What a person is to the team. What each role may do is said in one place, `apps.people.permissions`."""

    VIEWER = "viewer", "Viewer"
    ENGINEER = "engineer", "Engineer"
    REVIEWER = "reviewer", "Reviewer"
    ADMIN = "admin", "Admin"


class Scope(models.TextChoices):
    """What a token may be used for. Every token may read; nothing goes beyond its person's role."""

    READ = "read", "Look at what your role shows"
    LAUNCH = "launch", "Launch and steer runs, measure again, add problems"
    REVIEW = "review", "Propose, comment, vote"
    ADMIN = "admin", "Operate hosts and, for admins, manage the team"


class PersonManager(UserManager["Person"]):
    """Makes people. Who is made at the terminal as a superuser is an admin of the team."""

    def create_superuser(
        self, username: str, email: str | None = None, password: str | None = None, **fields: Any
    ) -> Person:
        """An admin."""
        return super().create_superuser(username, email, password, **{"role": Role.ADMIN, **fields})


class Person(AbstractUser):
    """Someone who signs in. Times are stored in UTC and shown in `time_zone`, or the browser's where it is empty."""

    role = models.CharField(max_length=16, choices=Role, default=Role.ENGINEER)
    time_zone = models.CharField(max_length=64, blank=True)
    theme = models.CharField(max_length=8, blank=True, choices=[("light", "Light"), ("dark", "Dark")])

    # What a token lets its bearer do of what the role allows; None for someone who signed in. Never stored.
    scopes: frozenset[str] | None = None
    # By which token they came, for the audit log; empty for someone who signed in. Never stored either.
    came_by: str = ""

    objects: ClassVar[PersonManager] = PersonManager()

    class Meta:
        verbose_name_plural = "people"
        ordering: ClassVar = ["username"]

    def __str__(self) -> str:
        return self.get_full_name() or self.username

    @property
    def is_invited(self) -> bool:
        """Whether they have not chosen a password yet."""
        return self.is_active and not self.has_usable_password()


class Token(models.Model):
    """Acts in a person's name over the API. Of the token itself only a digest is kept."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=16, help_text="its first characters, so that people can tell which it is")
    digest = models.CharField(max_length=64, unique=True, help_text="SHA-256 of the token")
    scopes = models.JSONField(default=list)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    last_used_from = models.CharField(max_length=45, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-id"]

    def __str__(self) -> str:
        return self.name

    def is_good(self, now: datetime | None = None) -> bool:
        """Whether it still opens anything."""
        return self.revoked_at is None and self.expires_at > (now or timezone.now())


class SignedIn(models.Model):
    """A browser in which a person is signed in. It goes with its session."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="signed_in")
    session = models.OneToOneField(Session, on_delete=models.CASCADE, related_name="+")
    browser = models.CharField(max_length=60)
    address = models.CharField(max_length=45, blank=True)
    at = models.DateTimeField(default=timezone.now)
    seen_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "signed in"

    def __str__(self) -> str:
        return f"{self.person} in {self.browser}"


class AuditEntries(AppendOnlyRows["AuditEntry"]):
    """Rows of `AuditEntry`."""


class AuditEntry(AppendOnly):
    """Who did what to what, from where. Appended by `apps.people.audit.record`.

    `kind` is area.deed (`run.stopped`). `through` says by which way it came: page, socket, `token NAME`, command line.
    """

    at = models.DateTimeField(default=timezone.now, db_index=True)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    who = models.CharField(max_length=150, help_text="the name as it was then")
    kind = models.CharField(max_length=40, db_index=True)
    about = models.CharField(max_length=200, blank=True)
    link = models.CharField(max_length=200, blank=True)
    detail = models.TextField(blank=True)
    address = models.CharField(max_length=45, blank=True)
    through = models.CharField(max_length=100, blank=True)

    objects = AuditEntries.as_manager()

    class Meta:
        ordering: ClassVar = ["-id"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.who}: {self.kind} {self.about}".strip()
