"""Addresses of runs, versions, comparisons and problems."""

from __future__ import annotations

from django.urls import path

from apps.runs.views.compare import compare, compare_runs, compare_versions
from apps.runs.views.launch import launch, preview
from apps.runs.views.problems import problem, problem_source, problems
from apps.runs.views.run import annotate, log_download, order, part, run, said
from apps.runs.views.runs import bulk, runs, runs_csv, save_view
from apps.runs.views.transcripts import export, take_in
from apps.runs.views.version import again, version, version_source

urlpatterns = [
    path("", runs, name="runs"),
    path("runs.csv", runs_csv, name="runs-csv"),
    path("runs/views/", save_view, name="runs-view"),
    path("runs/bulk/", bulk, name="runs-bulk"),
    path("runs/import/", take_in, name="runs-import"),
    path("launch/", launch, name="launch"),
    path("launch/preview/", preview, name="launch-preview"),
    path("runs/<int:pk>/", run, name="run"),
    path("runs/<int:pk>/part/<slug:name>/", part, name="run-part"),
    path("runs/<int:pk>/notes/", annotate, name="run-notes"),
    path("runs/<int:pk>/said/<int:seq>/", said, name="run-said"),
    path("runs/<int:pk>/order/", order, name="run-order"),
    path("runs/<int:pk>/log.txt", log_download, name="run-log"),
    path("runs/<int:pk>/transcript.json", export, name="run-transcript"),
    path("runs/<int:pk>/v<int:number>/", version, name="version"),
    path("runs/<int:pk>/v<int:number>/again/", again, name="version-again"),
    path("runs/<int:pk>/v<int:number>.py", version_source, name="version-source"),
    path("compare/", compare, name="compare"),
    path("compare/runs/", compare_runs, name="compare-runs"),
    path("compare/versions/", compare_versions, name="compare-versions"),
    path("problems/", problems, name="problems"),
    path("problems/<slug:slug>/", problem, name="problem"),
    path("problems/<slug:slug>.py", problem_source, name="problem-source"),
]
