"""`may(person, action, object)`: the one place that says who may do what. Views, sockets and the API all ask it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from apps.people.models import Person, Role


class Action(StrEnum):
    """What can be done. An action's object is named beside it."""

    VIEW = "view"  # anything
    LAUNCH = "launch"  # a problem
    STEER = "steer"  # a run: hint, pause, resume, stop, change limits
    REMEASURE = "remeasure"  # a version
    ADD_PROBLEM = "add_problem"
    EDIT_PROBLEM = "edit_problem"  # a problem
    OPERATE_HOST = "operate_host"  # a host: drain, enable
    ALLOW_WEAK_ISOLATION = "allow_weak_isolation"  # a host
    ADMINISTER = "administer"


_ADMIN_ONLY = {Action.ALLOW_WEAK_ISOLATION, Action.ADMINISTER}


def may(person: Any, action: Action, thing: object = None) -> bool:
    """Whether `person` (a `Person` or an anonymous user) may do `action` to `thing`. Nobody unknown may do anything."""
    if not isinstance(person, Person) or not person.is_active:
        return False
    if person.role == Role.ADMIN or person.is_superuser:
        return True
    return action not in _ADMIN_ONLY
