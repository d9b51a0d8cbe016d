"""The team's rules for reviews."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from apps.people.asking import person_who_may
from apps.people.permissions import Action
from apps.people.refusals import Refused
from apps.reviews import rules
from apps.reviews.models import APPROVALS_LIMIT


def review_rules(request: HttpRequest) -> HttpResponse:
    """Shows them, and sets them when sent."""
    person = person_who_may(request, Action.ADMINISTER)
    status = 200
    if request.method == "POST":
        typed = request.POST.get("approvals", "")
        try:
            if not typed.isdecimal():
                raise Refused(f"The number of approvals is a number between 1 and {APPROVALS_LIMIT}.", "approvals")
            rules.change(person, approvals=int(typed[:4]), own_approval=bool(request.POST.get("own_approval")))
            messages.success(request, "The rules hold from now on, for what is open too.", "good")
            return redirect("review-rules")
        except Refused as refusal:
            messages.error(request, refusal.message, "bad")
            status = 422
    context = {"rules": rules.current(), "limit": APPROVALS_LIMIT}
    return render(request, "reviews/rules.html", context, status=status)
