from __future__ import annotations

from django.apps import AppConfig


class PeopleConfig(AppConfig):
    name = "apps.people"
    label = "people"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Listen to signing in, and put this room's tabs into the settings."""
        from apps.people import sessions, sign_ins  # noqa: F401
        from apps.people.permissions import Action
        from apps.people.settings_tabs import Tab, register

        register(Tab("settings-profile", "Profile", Action.KEEP_ACCOUNT, 10))
        register(Tab("settings-sessions", "Sessions", Action.KEEP_ACCOUNT, 20))
        register(Tab("settings-tokens", "API tokens", Action.KEEP_ACCOUNT, 30))
        register(Tab("settings-members", "Members", Action.VIEW, 40))
        register(Tab("settings-audit", "Audit log", Action.READ_AUDIT, 90))
