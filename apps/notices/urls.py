"""Addresses of notices."""

from __future__ import annotations

from django.urls import path

from apps.notices.views.notices import notices, open_notice, read_all
from apps.notices.views.settings import add_webhook, change_webhook, notifications

urlpatterns = [
    path("notices/", notices, name="notices"),
    path("notices/read/", read_all, name="notices-read"),
    path("notices/<int:pk>/open/", open_notice, name="notice-open"),
    path("settings/notifications/", notifications, name="settings-notifications"),
    path("settings/notifications/webhooks/", add_webhook, name="settings-webhooks"),
    path("settings/notifications/webhooks/<int:pk>/", change_webhook, name="settings-webhook"),
]
