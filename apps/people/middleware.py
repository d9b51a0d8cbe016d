"""What every request brings along."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from apps.people import audit


class AuditOrigin:
    """Says for the audit log where a request comes from. Behind a proxy the server has put the client's address there."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """The rest of the way, known to come from there."""
        through = "API, signed in" if request.path.startswith("/api/") else "page"
        with audit.coming_from(str(request.META.get("REMOTE_ADDR") or ""), through):
            return self._get_response(request)
