"""Passwords: chosen by a link that works once, asked for by who has forgotten theirs, changed by who knows it."""

from __future__ import annotations

from typing import Any

from axes.utils import reset as forget_failures
from django.contrib import messages
from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import PasswordChangeForm, SetPasswordForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from apps.people import account, audit, mail, sessions, sign_ins
from apps.people.asking import person_who_may
from apps.people.models import Person
from apps.people.permissions import Action

MOST_ASKED = 10  # letters an hour that one address may ask for


@method_decorator(login_not_required, name="dispatch")
class ChoosePassword(auth.PasswordResetConfirmView):
    """Where an invitation and a forgotten password's link lead. Django moves the secret out of the address at once."""

    template_name = "people/choose_password.html"
    success_url = reverse_lazy("sign-in")

    def get_user(self, uidb64: str) -> Person | None:
        """Whose link it is; one of a deactivated member is void."""
        person = super().get_user(uidb64)
        return person if person is not None and person.is_active else None

    def form_valid(self, form: SetPasswordForm[Person]) -> HttpResponse:
        """Keep it, and let the person sign in even if they had been locked out."""
        answer = super().form_valid(form)
        forget_failures(username=form.user.username)
        sessions.end_all(form.user, form.user)
        audit.record("password.chosen", form.user, form.user.username)
        messages.success(self.request, f"Your password is set. Sign in as {form.user.username}.", "good")
        return answer


choose_password = ChoosePassword.as_view()


@login_not_required
def forgotten(request: HttpRequest) -> HttpResponse:
    """Sends a link to whoever has that address; the answer never tells whether anybody has."""
    asked = request.method == "POST" and mail.mail_is_set_up()
    if asked and not sign_ins.often(sign_ins.RESET_ASKED, MOST_ASKED):
        email = request.POST.get("email", "").strip()
        found = Person.objects.filter(email__iexact=email, is_active=True).first() if email else None
        audit.record(sign_ins.RESET_ASKED, None, found.username if found else "", who="somebody signed out")
        if found is not None:
            mail.send(found, mail.PASSWORD, request.build_absolute_uri("/"))
    return render(request, "people/forgotten.html", {"asked": asked, "mail": mail.mail_is_set_up()})


@require_POST
@sensitive_post_parameters()
def change_password(request: HttpRequest) -> HttpResponse:
    """A new password for who knows the old one; other sessions of theirs end."""
    person = person_who_may(request, Action.KEEP_ACCOUNT)
    form: Any = PasswordChangeForm(person, request.POST)
    if not form.is_valid():
        from apps.people.views.profile import profile_page

        return profile_page(request, person, passwords=form)
    account.change_password(request, person, form)
    messages.success(request, "Your password is changed. You are signed out everywhere else.", "good")
    return redirect("settings-profile")
