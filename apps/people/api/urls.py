"""Addresses of REST about people, under /api/v1/."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from apps.people.api.account import MeViews
from apps.people.api.views import AuditViews, MemberViews, SessionViews, TokenViews

router = SimpleRouter()
router.register("members", MemberViews, basename="api-member")
router.register("sessions", SessionViews, basename="api-session")
router.register("tokens", TokenViews, basename="api-token")
router.register("audit", AuditViews, basename="api-audit")
urlpatterns = [
    path("me/", MeViews.as_view({"get": "list", "patch": "change"}), name="api-me-list"),
    path("me/password/", MeViews.as_view({"post": "password"}), name="api-me-password"),
    *router.urls,
]
