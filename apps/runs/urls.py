"""Addresses of runs, versions, comparisons and problems."""

from __future__ import annotations

from django.urls import path

from apps.runs.views import compare, launch, problems, run, runs, version

urlpatterns = [
    path("", runs.runs, name="runs"),
    path("runs/bulk/", runs.bulk, name="runs-bulk"),
    path("launch/", launch.launch, name="launch"),
    path("launch/preview/", launch.preview, name="launch-preview"),
    path("runs/<int:pk>/", run.run, name="run"),
    path("runs/<int:pk>/part/<slug:name>/", run.part, name="run-part"),
    path("runs/<int:pk>/order/", run.order, name="run-order"),
    path("runs/<int:pk>/log.txt", run.log_download, name="run-log"),
    path("runs/<int:pk>/v<int:number>/", version.version, name="version"),
    path("runs/<int:pk>/v<int:number>/again/", version.again, name="version-again"),
    path("runs/<int:pk>/v<int:number>.py", version.source, name="version-source"),
    path("compare/", compare.compare, name="compare"),
    path("compare/runs/", compare.compare_runs, name="compare-runs"),
    path("problems/", problems.problems, name="problems"),
    path("problems/<slug:slug>/", problems.problem, name="problem"),
    path("problems/<slug:slug>.py", problems.source, name="problem-source"),
]
