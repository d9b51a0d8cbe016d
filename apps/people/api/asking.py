"""What REST views of every room are made from: they ask `may` before anything else."""

from __future__ import annotations

from typing import Any, cast

from rest_framework import exceptions, viewsets
from rest_framework.request import Request

from apps.people.asking import refusal
from apps.people.models import Person
from apps.people.permissions import SCOPES, Action, may


def ask(person: Any, action: Action, thing: object = None) -> None:
    """Raise a 403 unless `may` agrees, saying whether it is the role or the token that does not allow it."""
    if may(person, action, thing):
        return
    needed = SCOPES.get(action)
    if getattr(person, "scopes", None) is not None and (needed is None or needed not in person.scopes):
        wanted = f"Make one with the scope {needed.value}" if needed else "Sign in for that"
        raise exceptions.PermissionDenied(f"This token is not for that ({action.replace('_', ' ')}). {wanted}.")
    raise exceptions.PermissionDenied(refusal(action))


class AskingViews(viewsets.GenericViewSet[Any]):
    """Asks `may` before anything else; `looks` is what one must be allowed to get anywhere."""

    looks = Action.VIEW

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Nobody who may not look gets further."""
        super().initial(request, *args, **kwargs)
        ask(request.user, self.looks)

    @property
    def person(self) -> Person:
        """Who asks."""
        return cast("Person", self.request.user)

    def read(self, shape: type[Any]) -> Any:
        """The request's body as that shape; a 400 where it isn't."""
        data = shape(data=self.request.data)
        data.is_valid(raise_exception=True)
        return data
