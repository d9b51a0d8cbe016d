from __future__ import annotations

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    name = "apps.notices"
    label = "notices"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Carry the letters about accounts, and put this room's tab into the settings."""
        from apps.notices.telling import post_letter
        from apps.people import mail
        from apps.people.permissions import Action
        from apps.people.settings_tabs import Tab, register

        mail.deliver_by(post_letter)
        register(Tab("settings-notifications", "Notifications", Action.KEEP_ACCOUNT, 20))
