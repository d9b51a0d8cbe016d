"""What every request brings along."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import url_has_allowed_host_and_scheme

from apps.people import audit, sessions

_SENT = re.compile(r"[0-9a-f]{16}")
_AN_HOUR = 3600


class AuditOrigin:
    """Says for the audit log where a request comes from, and notes that the session is in use. Behind a proxy the server
    has put the client's address there."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """The rest of the way, known to come from there."""
        through = "API, signed in" if request.path.startswith("/api/") else "page"
        with audit.coming_from(str(request.META.get("REMOTE_ADDR") or ""), through):
            if request.user.is_authenticated:
                sessions.seen(request, request.user)
            return self._get_response(request)


class SignInFirst(LoginRequiredMiddleware):
    """Who is not signed in goes to the sign-in page, and from there back to the page they were on.

    For a form that was sent that is the page it stood on: its own address often takes nothing but forms. A part of a page
    that asks by itself has the whole page read again.
    """

    # The stubs know of redirects alone.
    def handle_no_permission(  # type: ignore[override]
        self, request: HttpRequest, view_func: Callable[..., Any]
    ) -> HttpResponseBase:
        """The way to the sign-in page."""
        if request.headers.get("HX-Request") == "true":
            return HttpResponse(status=401, headers={"HX-Refresh": "true"})
        back = request.get_full_path()
        if request.method not in ("GET", "HEAD"):
            back = _page_it_stood_on(request)
        return redirect_to_login(back, self.get_login_url(view_func), self.get_redirect_field_name(view_func))


def _page_it_stood_on(request: HttpRequest) -> str:
    came_from = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(came_from, {request.get_host()}):
        return "/"
    parts = urlsplit(came_from)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


class SaysWhatWasTaken:
    """Tells the page, by a cookie, that what was typed into a form has been taken: until then it keeps it (`keep.js`).

    The form brings a number of its own as `kept`. A refusal is an answer of 400 and more, or an error message.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """The rest of the way, and the word."""
        answer = self._get_response(request)
        if request.method != "POST" or request.path.startswith("/api/") or answer.status_code >= 400:
            return answer
        sent = request.POST.get("kept", "")
        # The messages' own iterator would count them as shown.
        said = getattr(messages.get_messages(request), "_queued_messages", ())
        if (
            request.user.is_authenticated
            and _SENT.fullmatch(sent)
            and not any(one.level >= messages.ERROR for one in said)
        ):
            answer.set_cookie(f"taken-{sent}", "1", max_age=_AN_HOUR, samesite="Lax")
        return answer
