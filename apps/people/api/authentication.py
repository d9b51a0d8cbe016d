"""`Authorization: Bearer TOKEN` (or `Token TOKEN`): a person, with no more rights than the token's scopes."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.request import Request

from apps.people import tokens
from apps.people.models import Person


class TokenAuthentication(BaseAuthentication):
    """Needs neither cookie nor CSRF token. A token in an address is not looked at: addresses end up in logs."""

    def authenticate(self, request: Request) -> tuple[Person, None] | None:
        """The token's person, or None where the request brings no token."""
        text = tokens.bearer(get_authorization_header(request).decode("latin-1"))
        if text is None:
            return None
        person = tokens.person_of(text)
        if person is None:
            raise exceptions.AuthenticationFailed(
                "This token is unknown, expired or revoked. Make a new one under Settings › API tokens."
            )
        return person, None

    def authenticate_header(self, request: Request) -> str:
        """What a client is told to bring."""
        return 'Bearer realm="PRAGMA"'


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[misc]
    """How the OpenAPI description names it."""

    target_class = TokenAuthentication
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """A bearer token."""
        return {"type": "http", "scheme": "bearer", "description": "Made under Settings › API tokens."}
