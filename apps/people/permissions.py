"""`may(person, action, object)`: the one place that says who may do what. Views, sockets and the API all ask it.

A role is what the team trusts a person with; a token's scopes take away from that and never add to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from apps.people.models import Person, Role, Scope


class Action(StrEnum):
    """What can be done. An action's object is named beside it."""

    VIEW = "view"  # anything
    KEEP_ACCOUNT = "keep_account"  # one's own: profile, password, tokens, notifications
    LAUNCH = "launch"  # a problem
    STEER = "steer"  # a run: hint, pause, resume, stop, change limits
    REMEASURE = "remeasure"  # a version
    ADD_PROBLEM = "add_problem"
    EDIT_PROBLEM = "edit_problem"  # a problem
    PROPOSE = "propose"  # a version for review
    COMMENT = "comment"  # a proposal
    REVIEW = "review"  # a proposal: vote
    ACCEPT = "accept"  # a proposal: accept or decline
    REVOKE = "revoke"  # an accepted kernel
    OPERATE_HOST = "operate_host"  # a host: drain, enable
    ALLOW_WEAK_ISOLATION = "allow_weak_isolation"  # a host
    MANAGE_MEMBERS = "manage_members"  # invite, change roles, deactivate
    MANAGE_MODELS = "manage_models"  # names, addresses and keys of models
    MANAGE_LIMITS = "manage_limits"  # what people and the team may spend
    READ_AUDIT = "read_audit"
    ADMINISTER = "administer"  # settings of the whole team


_EVERYBODY = frozenset(Role)
_ENGINEERS = frozenset({Role.ENGINEER, Role.REVIEWER, Role.ADMIN})
_REVIEWERS = frozenset({Role.REVIEWER, Role.ADMIN})
_ADMINS = frozenset({Role.ADMIN})

ROLES: Mapping[Action, frozenset[Role]] = {
    Action.VIEW: _EVERYBODY,
    Action.KEEP_ACCOUNT: _EVERYBODY,
    Action.LAUNCH: _ENGINEERS,
    Action.STEER: _ENGINEERS,
    Action.REMEASURE: _ENGINEERS,
    Action.ADD_PROBLEM: _ENGINEERS,
    Action.EDIT_PROBLEM: _ENGINEERS,
    Action.PROPOSE: _ENGINEERS,
    Action.COMMENT: _ENGINEERS,
    Action.REVIEW: _REVIEWERS,
    Action.ACCEPT: _REVIEWERS,
    Action.REVOKE: _REVIEWERS,
    Action.OPERATE_HOST: _ENGINEERS,
    Action.ALLOW_WEAK_ISOLATION: _ADMINS,
    Action.MANAGE_MEMBERS: _ADMINS,
    Action.MANAGE_MODELS: _ADMINS,
    Action.MANAGE_LIMITS: _ADMINS,
    Action.READ_AUDIT: _ADMINS,
    Action.ADMINISTER: _ADMINS,
}

# What a token of that scope may be used for, besides reading. One's own account is left to people who signed in: whoever
# finds a token must not be able to make themselves another.
SCOPES: Mapping[Action, Scope] = {
    Action.VIEW: Scope.READ,
    Action.LAUNCH: Scope.LAUNCH,
    Action.STEER: Scope.LAUNCH,
    Action.REMEASURE: Scope.LAUNCH,
    Action.ADD_PROBLEM: Scope.LAUNCH,
    Action.EDIT_PROBLEM: Scope.LAUNCH,
    Action.PROPOSE: Scope.REVIEW,
    Action.COMMENT: Scope.REVIEW,
    Action.REVIEW: Scope.REVIEW,
    Action.ACCEPT: Scope.REVIEW,
    Action.REVOKE: Scope.REVIEW,
    Action.OPERATE_HOST: Scope.ADMIN,
    Action.ALLOW_WEAK_ISOLATION: Scope.ADMIN,
    Action.MANAGE_MEMBERS: Scope.ADMIN,
    Action.MANAGE_MODELS: Scope.ADMIN,
    Action.MANAGE_LIMITS: Scope.ADMIN,
    Action.READ_AUDIT: Scope.ADMIN,
    Action.ADMINISTER: Scope.ADMIN,
}


def may(person: Any, action: Action, thing: object = None) -> bool:
    """Whether `person` (a `Person` or an anonymous user) may do `action` to `thing`. Nobody unknown may do anything."""
    if not isinstance(person, Person) or not person.is_active:
        return False
    if person.scopes is not None and not _covers(person.scopes, action):
        return False
    return person.role in ROLES[action]


def _covers(scopes: frozenset[str], action: Action) -> bool:
    needed = SCOPES.get(action)
    return needed is Scope.READ or needed in scopes
