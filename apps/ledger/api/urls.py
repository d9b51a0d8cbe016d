"""Addresses of REST about models, calls and limits, under /api/v1/."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from apps.ledger.api.managing import LimitViews, TrialViews
from apps.ledger.api.views import CallViews, ModelViews

router = SimpleRouter()
router.register("models", ModelViews, basename="api-model")
router.register("calls", CallViews, basename="api-call")
router.register("trials", TrialViews, basename="api-trial")
_limits = LimitViews.as_view({"get": "list", "patch": "change"})
_of_person = LimitViews.as_view({"put": "change_person"})
urlpatterns = [
    *router.urls,
    path("limits/", _limits, name="api-limits"),
    path("limits/<username>/", _of_person, name="api-person-limit"),
]
