"""Addresses of the building. Each room names its own."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from pragma_web.health import healthz

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("api/", include("apps.runs.api.urls")),
    path("", include("apps.people.urls")),
    path("", include("apps.hosts.urls")),
    path("", include("apps.runs.urls")),
]
