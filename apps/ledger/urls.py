"""Addresses of models and limits."""

from __future__ import annotations

from django.urls import path

from apps.ledger.views.calls import calls
from apps.ledger.views.limits import person_limit, spending_and_limits
from apps.ledger.views.models import change, model, models, trial, try_out

urlpatterns = [
    path("runs/<int:run>/calls/", calls, name="run-calls"),
    path("settings/models/", models, name="settings-models"),
    path("settings/models/new/", model, name="settings-model-new"),
    path("settings/models/<int:pk>/", model, name="settings-model"),
    path("settings/models/<int:pk>/change/", change, name="settings-model-change"),
    path("settings/models/<int:pk>/test/", try_out, name="settings-model-test"),
    path("settings/models/tests/<int:pk>/", trial, name="settings-model-trial"),
    path("settings/limits/", spending_and_limits, name="settings-limits"),
    path("settings/limits/<int:pk>/", person_limit, name="settings-person-limit"),
]
