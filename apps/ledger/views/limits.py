"""Settings › Limits and spending."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST

from apps.ledger import catalogue, limits, spending
from apps.ledger.forms import LimitsForm, PersonLimitForm
from apps.people.asking import person_who_may
from apps.people.models import Person
from apps.people.permissions import Action, may


def spending_and_limits(request: HttpRequest) -> HttpResponse:
    """This month beside its limits: everybody's for whoever sets them, one's own for others."""
    person = person_who_may(request, Action.VIEW)
    if request.method != "POST":
        return _page(request, person, LimitsForm(instance=limits.current()))
    admin = person_who_may(request, Action.MANAGE_LIMITS)
    form = LimitsForm(request.POST, instance=limits.current())
    if not form.is_valid():
        return _page(request, person, form, status=422)
    catalogue.set_limits(form, admin)
    messages.success(request, "The limits hold from now on.", "good")
    return redirect("settings-limits")


@require_POST
def person_limit(request: HttpRequest, pk: int) -> HttpResponse:
    """One person's own limit."""
    admin = person_who_may(request, Action.MANAGE_LIMITS)
    person = get_object_or_404(Person, pk=pk)
    form = PersonLimitForm(request.POST)
    if form.is_valid():
        catalogue.set_person_limit(person, form.cleaned_data["month_usd"], admin)
        messages.success(request, f"{person}'s limit holds from now on.", "good")
    else:
        messages.error(request, f"{person}'s limit is an amount in dollars, or empty.", "bad")
    return redirect("settings-limits")


def _page(request: HttpRequest, person: Person, form: LimitsForm, status: int = 200) -> HttpResponse:
    now, current = timezone.now(), limits.current()
    everybody = may(person, Action.MANAGE_LIMITS)
    people = list(Person.objects.filter(is_active=True).order_by("username")) if everybody else [person]
    context = {
        "form": form,
        "limits": current,
        "month": limits.month_of(now),
        "team": spending.of_month(now),
        "people": spending.by_person(current, people, now),
        "by_model": spending.by_model(now),
        "everybody": everybody,
    }
    return render(request, "ledger/limits.html", context, status=status)
