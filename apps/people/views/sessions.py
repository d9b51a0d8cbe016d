"""Settings › Sessions."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.people import sessions
from apps.people.asking import person_who_may
from apps.people.permissions import Action


def session_list(request: HttpRequest) -> HttpResponse:
    """Where one is signed in."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    context = {"sessions": sessions.of(person)[:200], "here": request.session.session_key}
    return render(request, "settings/sessions.html", context)


@require_POST
def end_session(request: HttpRequest, pk: int) -> HttpResponse:
    """One of one's own sessions ends; ending this one leads to the sign-in page."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    one = get_object_or_404(sessions.of(person), pk=pk)
    sessions.end(one, person)
    if one.session_id == request.session.session_key:
        request.session.flush()
        return redirect("sign-in")
    messages.success(request, f"{one.browser} is signed out.", "good")
    return redirect("settings-sessions")


@require_POST
def end_others(request: HttpRequest) -> HttpResponse:
    """All of one's own sessions but this one end."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    ended = sessions.end_all(person, person, but=request.session.session_key)
    messages.success(request, f"{ended} other session{'s' * (ended != 1)} ended.", "good")
    return redirect("settings-sessions")
