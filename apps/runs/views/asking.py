"""What views share: the person who asks, and the answer to those who may not."""

from __future__ import annotations

from typing import cast

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from apps.people.models import Person
from apps.people.permissions import Action, may


def person_who_may(request: HttpRequest, action: Action, thing: object = None) -> Person:
    """The person asking, if they may do this; raises `PermissionDenied` (page 403) if not."""
    if not may(request.user, action, thing):
        raise PermissionDenied(
            f"Your role does not allow you to {action.replace('_', ' ')} here. An admin of your team can."
        )
    return cast("Person", request.user)


def safe_back(request: HttpRequest) -> str:
    """Where a form says it came from, if that is an address of this server; else the list of runs."""
    back = request.POST.get("back", "")
    return back if url_has_allowed_host_and_scheme(back, {request.get_host()}) else reverse("runs")
