"""Signing in and out, and what is kept about pages."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST

from apps.people.forms import SignInForm
from apps.people.mail import mail_is_set_up
from apps.people.models import Person

_A_YEAR = 365 * 24 * 3600


@method_decorator(login_not_required, name="dispatch")
class SignIn(auth.LoginView):
    """Name and password; then to where the person was going."""

    template_name = "people/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get_context_data(self, **context: Any) -> dict[str, Any]:
        """What the page says to those who have forgotten."""
        return super().get_context_data(**context) | {"mail": mail_is_set_up()}


sign_in = SignIn.as_view()
sign_out = login_not_required(auth.LogoutView.as_view())


@require_POST
@login_not_required
def theme(request: HttpRequest) -> HttpResponse:
    """Keeps the theme with the person, and in a cookie for the pages before sign-in. Empty follows the system."""
    chosen = request.POST.get("theme", "")
    if chosen not in ("", "light", "dark"):
        return HttpResponseBadRequest("A theme is light, dark or empty.")
    if request.user.is_authenticated:
        Person.objects.filter(pk=request.user.pk).update(theme=chosen)
    answer = HttpResponse(status=204)
    answer.set_cookie("theme", chosen, max_age=_A_YEAR, samesite="Lax")
    return answer


@login_not_required
def link(request: HttpRequest) -> HttpResponse:
    """Says that the server is there, to pages that have no socket."""
    return HttpResponse(status=204)
