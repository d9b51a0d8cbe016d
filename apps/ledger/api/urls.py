"""Addresses of REST about models and calls, under /api/v1/."""

from __future__ import annotations

from rest_framework.routers import SimpleRouter

from apps.ledger.api.views import CallViews, ModelViews

router = SimpleRouter()
router.register("models", ModelViews, basename="api-model")
router.register("calls", CallViews, basename="api-call")
urlpatterns = router.urls
