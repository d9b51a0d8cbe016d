"""Errors as JSON of one shape: {"message": what and what to do, "field": input to blame or null, "errors": by field}."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions, serializers, status
from rest_framework.response import Response
from rest_framework.views import exception_handler

from apps.people.refusals import Refused


class Complaint(serializers.Serializer[Any]):
    """How every error looks."""

    message = serializers.CharField()
    field = serializers.CharField(allow_null=True)
    errors = serializers.DictField(child=serializers.ListField())  # type: ignore[assignment]


def answer(problem: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to an exception; None (a plain 500) for those nobody expected."""
    if isinstance(problem, Refused):
        code = status.HTTP_400_BAD_REQUEST if problem.faulty or problem.field else status.HTTP_409_CONFLICT
        return _response(code, problem.message, problem.field)
    if isinstance(problem, Http404 | exceptions.NotFound):
        return _response(status.HTTP_404_NOT_FOUND, "There is nothing at this address. Look at the list it belongs to.")
    if isinstance(problem, PermissionDenied):
        return _response(status.HTTP_403_FORBIDDEN, str(problem) or "You may not do this.")
    response = exception_handler(problem, context)
    if response is None:
        return None
    if isinstance(problem, exceptions.ValidationError):
        errors = _by_field(response.data)
        field, messages = next(iter(errors.items()), ("", ["The request can't be read."]))
        return _response(response.status_code, messages[0], "" if field == "non_field_errors" else field, errors)
    message = response.data.get("detail", "") if isinstance(response.data, dict) else ""
    if isinstance(problem, exceptions.NotAuthenticated):
        message = "Sign in first, or send a token: Authorization: Bearer TOKEN. Settings › API tokens makes one."
    response.data = {"message": str(message), "field": None, "errors": {}}
    return response


def _response(code: int, message: str, field: str = "", errors: dict[str, list[str]] | None = None) -> Response:
    told = errors or ({field: [message]} if field else {})
    return Response({"message": message, "field": field or None, "errors": told}, status=code)


def _by_field(data: Any, path: str = "") -> dict[str, list[str]]:
    """Every message under its field's dotted name."""
    if isinstance(data, dict):
        found: dict[str, list[str]] = {}
        for name, value in data.items():
            found |= _by_field(value, f"{path}.{name}" if path else str(name))
        return found
    messages = [str(item) for item in data] if isinstance(data, list) else [str(data)]
    return {path or "non_field_errors": messages}
