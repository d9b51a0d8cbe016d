"""Addresses of the REST interface and of its description."""

from __future__ import annotations

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.routers import SimpleRouter

from apps.runs.api.views import HostViews, ProblemViews, RunViews, VersionViews

router = SimpleRouter()
router.register("problems", ProblemViews, basename="api-problem")
router.register("runs", RunViews, basename="api-run")
router.register(r"runs/(?P<run_pk>\d+)/versions", VersionViews, basename="api-version")
router.register("hosts", HostViews, basename="api-host")

urlpatterns = [
    path("v1/", include(router.urls)),
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="api-schema"), name="api-docs"),
]
