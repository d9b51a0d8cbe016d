"""Settings › Members."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.people import mail, members
from apps.people.asking import person_who_may
from apps.people.forms import InviteForm
from apps.people.models import Person, Role
from apps.people.permissions import ROLES, Action
from apps.people.refusals import Refused
from apps.people.views.once import show_once, shown_once


def member_list(request: HttpRequest) -> HttpResponse:
    """The team; sent by an admin, the form invites somebody."""
    person_who_may(request, Action.VIEW)
    if request.method != "POST":
        return _page(request, InviteForm())
    admin = person_who_may(request, Action.MANAGE_MEMBERS)
    form = InviteForm(request.POST)
    if form.is_valid():
        data = form.cleaned_data
        try:
            new = members.invite(
                admin, data["username"], data["role"], email=data["email"], full_name=data["full_name"]
            )
        except Refused as refusal:
            form.add_error(refusal.field if refusal.field in form.fields else None, refusal.message)
        else:
            _hand_out(request, new, mail.INVITATION)
            return redirect("settings-members")
    return _page(request, form, status=422)


@require_POST
def change_member(request: HttpRequest, pk: int) -> HttpResponse:
    """A role, deactivation, letting in again, a link for a new password."""
    admin = person_who_may(request, Action.MANAGE_MEMBERS)
    member = get_object_or_404(Person, pk=pk)
    try:
        match request.POST.get("do"):
            case "role":
                members.set_role(admin, member, request.POST.get("role", ""))
                messages.success(request, f"{member} is {member.get_role_display().lower()} now.", "good")
            case "deactivate":
                members.deactivate(admin, member)
                messages.success(request, f"{member} can't sign in any more. What they did stays.", "good")
            case "reactivate":
                members.reactivate(admin, member)
                messages.success(request, f"{member} can sign in again.", "good")
            case "link":
                members.reset_by_admin(admin, member)
                _hand_out(request, member, mail.INVITATION if member.is_invited else mail.PASSWORD)
            case _:
                raise Refused("There is no such change. Use the buttons of the page.")
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
    return redirect("settings-members")


def _hand_out(request: HttpRequest, member: Person, letter: str) -> None:
    """By e-mail where that is set up and the member has an address; else shown to the admin, once."""
    if mail.send(member, letter, request.build_absolute_uri("/")):
        messages.success(request, f"A link to choose a password goes to {member.email}.", "good")
    else:
        show_once(request, "link", str(member), request.build_absolute_uri(members.password_link(member)))


def _page(request: HttpRequest, form: InviteForm, status: int = 200) -> HttpResponse:
    people = Person.objects.annotate(token_used_at=Max("tokens__last_used_at")).order_by("-is_active", "username")
    context = {
        "form": form,
        "people": people,
        "roles": Role.choices,
        "table": [(action.replace("_", " "), [role in allowed for role in Role]) for action, allowed in ROLES.items()],
        "made": shown_once(request, "link"),
        "mail": mail.mail_is_set_up(),
    }
    answer = render(request, "settings/members.html", context, status=status)
    answer["Cache-Control"] = "no-store"
    return answer
