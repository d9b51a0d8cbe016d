from __future__ import annotations

from django.apps import AppConfig


class HostsConfig(AppConfig):
    name = "apps.hosts"
    label = "hosts"
    default_auto_field = "django.db.models.BigAutoField"
