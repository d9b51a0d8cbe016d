"""What views of runs share: the person who asks, and the way back."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from apps.people.asking import person_who_may

__all__ = ["person_who_may", "safe_back"]


def safe_back(request: HttpRequest) -> str:
    """Where a form says it came from, if that is an address of this server; else the list of runs."""
    back = request.POST.get("back", "")
    return back if url_has_allowed_host_and_scheme(back, {request.get_host()}) else reverse("runs")
