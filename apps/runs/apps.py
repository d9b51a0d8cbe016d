from __future__ import annotations

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "apps.runs"
    label = "runs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Listen to the hosts: both modules take in what jobs found."""
        from apps.runs import problems, remeasure  # noqa: F401
