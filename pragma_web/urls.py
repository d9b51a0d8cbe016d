"""Addresses of the building. Each room names its own; REST of all rooms lies under /api/v1/ and is described in one place."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from pragma_web.health import healthz
from pragma_web.metrics import metrics

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", healthz, name="healthz"),
    path("metrics", metrics, name="metrics"),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("api/docs/", login_required(SpectacularSwaggerSplitView.as_view(url_name="api-schema")), name="api-docs"),
    path("api/v1/", include("apps.people.api.urls")),
    path("api/v1/", include("apps.notices.api.urls")),
    path("api/v1/", include("apps.ledger.api.urls")),
    path("api/v1/", include("apps.runs.api.urls")),
    path("api/v1/", include("apps.reviews.api.urls")),
    path("", include("apps.people.urls")),
    path("", include("apps.notices.urls")),
    path("", include("apps.hosts.urls")),
    path("", include("apps.ledger.urls")),
    path("", include("apps.runs.urls")),
    path("", include("apps.reviews.urls")),
]
