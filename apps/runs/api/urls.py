"""Addresses of REST about problems, runs, saved lists, versions, evaluations, Compare and hosts, under /api/v1/."""

from __future__ import annotations

from rest_framework.routers import SimpleRouter

from apps.runs.api.compare import CompareViews
from apps.runs.api.evaluations import EvaluationViews
from apps.runs.api.hosts import HostViews
from apps.runs.api.saved_views import SavedViewViews
from apps.runs.api.views import ProblemViews, RunViews, VersionViews

router = SimpleRouter()
router.register("problems", ProblemViews, basename="api-problem")
router.register("runs", RunViews, basename="api-run")
router.register(r"runs/(?P<run_pk>\d+)/versions", VersionViews, basename="api-version")
router.register("saved-views", SavedViewViews, basename="api-saved-view")
router.register("evaluations", EvaluationViews, basename="api-evaluation")
router.register("compare", CompareViews, basename="api-compare")
router.register("hosts", HostViews, basename="api-host")
urlpatterns = router.urls
