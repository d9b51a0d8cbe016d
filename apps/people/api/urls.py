"""Addresses of REST about people, under /api/v1/."""

from __future__ import annotations

from rest_framework.routers import SimpleRouter

from apps.people.api.views import AuditViews, MemberViews, MeViews, SessionViews, TokenViews

router = SimpleRouter()
router.register("me", MeViews, basename="api-me")
router.register("members", MemberViews, basename="api-member")
router.register("sessions", SessionViews, basename="api-session")
router.register("tokens", TokenViews, basename="api-token")
router.register("audit", AuditViews, basename="api-audit")
urlpatterns = router.urls
