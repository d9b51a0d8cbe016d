"""Addresses of REST about notices, under /api/v1/."""

from __future__ import annotations

from rest_framework.routers import SimpleRouter

from apps.notices.api.views import NoticeViews, WebhookViews, WishViews

router = SimpleRouter()
router.register("notices", NoticeViews, basename="api-notice")
router.register("notice-choices", WishViews, basename="api-notice-choice")
router.register("webhooks", WebhookViews, basename="api-webhook")
urlpatterns = router.urls
