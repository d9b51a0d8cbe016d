"""What every room's views share: the person who asks, and the answer to those who may not."""

from __future__ import annotations

from typing import cast

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from apps.people.models import Person
from apps.people.permissions import Action, may


def refusal(action: Action) -> str:
    """What is said to someone whose role doesn't allow it."""
    return f"Your role does not allow you to {action.replace('_', ' ')} here. An admin of your team can."


def person_who_may(request: HttpRequest, action: Action, thing: object = None) -> Person:
    """The person asking, if they may do this; raises `PermissionDenied` (page 403) if not."""
    if not may(request.user, action, thing):
        raise PermissionDenied(refusal(action))
    return cast("Person", request.user)
