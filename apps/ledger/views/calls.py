"""Every call of a run, with what it took."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.ledger import spending
from apps.ledger.models import Call
from apps.people.asking import person_who_may
from apps.people.permissions import Action

PER_PAGE = 100


def calls(request: HttpRequest, run: int) -> HttpResponse:
    """The calls of one run, oldest first."""
    person_who_may(request, Action.VIEW)
    rows = Call.objects.filter(run=run).select_related("model").order_by("pk")
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "ledger/calls.html", {"run": run, "page": page, "spent": spending.of_run(run)})
