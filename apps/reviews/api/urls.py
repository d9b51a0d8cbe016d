"""Addresses of REST about reviews and kernels, under /api/v1/."""

from __future__ import annotations

from django.urls import path
from rest_framework.routers import SimpleRouter

from apps.reviews.api.comments import CommentViews
from apps.reviews.api.kernels import KernelViews
from apps.reviews.api.proposals import ReviewViews

router = SimpleRouter()
router.register("reviews", ReviewViews, basename="api-review")
router.register("kernels", KernelViews, basename="api-kernel")
_listed = CommentViews.as_view({"get": "list", "post": "create"})
_one = CommentViews.as_view({"patch": "partial_update", "delete": "destroy"})
urlpatterns = [
    *router.urls,
    path("reviews/<int:review_pk>/comments/", _listed, name="api-comments"),
    path("reviews/<int:review_pk>/comments/<int:pk>/", _one, name="api-comment"),
]
