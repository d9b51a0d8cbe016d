"""People who sign in."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.auth.models import AbstractUser
from django.db import models


class Role(models.TextChoices):
    """What a person is to the team. What each role may do is said in one place, `apps.people.permissions.may`."""

    ENGINEER = "engineer", "Engineer"
    ADMIN = "admin", "Admin"


class Person(AbstractUser):
    """Someone who signs in. Times are stored in UTC and shown in `time_zone`, or the browser's where it is empty."""

    role = models.CharField(max_length=16, choices=Role, default=Role.ENGINEER)
    time_zone = models.CharField(max_length=64, blank=True)
    theme = models.CharField(max_length=8, blank=True, choices=[("light", "Light"), ("dark", "Dark")])

    class Meta:
        verbose_name_plural = "people"
        ordering: ClassVar = ["username"]

    def __str__(self) -> str:
        return self.get_full_name() or self.username
