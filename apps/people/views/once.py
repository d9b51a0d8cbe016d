"""What a page shows once and never again: a token, a link. It waits in the session for the page after the redirect."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpRequest


@dataclass(frozen=True)
class ShownOnce:
    """Something secret and what it is for."""

    name: str
    text: str


def show_once(request: HttpRequest, what: str, name: str, text: str) -> None:
    """Let this session's next page of that sort show it."""
    request.session[f"once.{what}"] = [name, text]


def shown_once(request: HttpRequest, what: str) -> ShownOnce | None:
    """What there is to show, gone from the session with this."""
    kept = request.session.pop(f"once.{what}", None)
    return ShownOnce(*kept) if kept else None
