from __future__ import annotations

from django.apps import AppConfig


class LedgerConfig(AppConfig):
    name = "apps.ledger"
    label = "ledger"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Puts this room's pages into the settings."""
        from apps.people.permissions import Action
        from apps.people.settings_tabs import Tab, register

        register(Tab("settings-models", "Models", Action.VIEW, 20, ("settings-model", "settings-model-new")))
        register(Tab("settings-limits", "Limits and spending", Action.VIEW, 30))
