from __future__ import annotations

from django.apps import AppConfig


class ReviewsConfig(AppConfig):
    name = "apps.reviews"
    label = "reviews"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Listen to what hosts report and measure, and add reviews' pieces to the pages of runs and problems."""
        from apps.reviews import duels, hooks, verifying

        hooks.register()
        verifying.listen()
        duels.listen()
