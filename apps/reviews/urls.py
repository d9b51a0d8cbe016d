"""Addresses of reviews and accepted kernels."""

from __future__ import annotations

from django.urls import path

from apps.reviews.views import deeds
from apps.reviews.views import kernels as kernel_views
from apps.reviews.views.queue import propose, reviews
from apps.reviews.views.review import composer, pulse, review
from apps.reviews.views.rules import review_rules

urlpatterns = [
    path("reviews/", reviews, name="reviews"),
    path("reviews/new/", propose, name="propose"),
    path("reviews/<int:pk>/", review, name="review"),
    path("reviews/<int:pk>/do/", deeds.do, name="review-do"),
    path("reviews/<int:pk>/composer/", composer, name="review-composer"),
    path("reviews/<int:pk>/pulse/", pulse, name="review-pulse"),
    path("settings/reviews/", review_rules, name="review-rules"),
    path("kernels/", kernel_views.kernels, name="kernels"),
    path("kernels/client/", kernel_views.client, name="kernel-client"),
    path("kernels/<int:pk>/", kernel_views.kernel, name="kernel"),
    path("kernels/<int:pk>/do/", kernel_views.do, name="kernel-do"),
    path("kernels/<int:pk>/file.py", kernel_views.kernel_file, name="kernel-file"),
    path("kernels/<int:pk>/bundle.zip", kernel_views.kernel_bundle, name="kernel-bundle"),
]
