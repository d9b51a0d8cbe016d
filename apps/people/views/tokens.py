"""Settings › API tokens."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from apps.people import tokens
from apps.people.asking import person_who_may
from apps.people.forms import TokenForm
from apps.people.models import Person, Token
from apps.people.permissions import Action
from apps.people.refusals import Refused
from apps.people.views.once import show_once, shown_once


def token_list(request: HttpRequest) -> HttpResponse:
    """A person's tokens; sent, the form makes one, whose text the next page shows once."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    if request.method != "POST":
        return _page(request, person, TokenForm(tokens.scopes_of_role(person)))
    form = TokenForm(tokens.scopes_of_role(person), request.POST)
    if form.is_valid():
        data = form.cleaned_data
        try:
            token, text = tokens.make(person, data["name"], data["scopes"], data["days"])
        except Refused as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, refusal.message)
        else:
            show_once(request, "token", token.name, text)
            return redirect("settings-tokens")
    return _page(request, person, form, status=422)


@require_POST
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """One's own token opens nothing from now on."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    token = get_object_or_404(Token, pk=pk, person=person)
    tokens.revoke(token, person)
    messages.success(request, f"{token.name} is revoked.", "good")
    return redirect("settings-tokens")


def _page(request: HttpRequest, person: Person, form: TokenForm, status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "tokens": person.tokens.all()[:200],
        "now": timezone.now(),
        "made": shown_once(request, "token"),
        "server": request.build_absolute_uri("/"),
    }
    answer = render(request, "settings/tokens.html", context, status=status)
    answer["Cache-Control"] = "no-store"
    return answer
