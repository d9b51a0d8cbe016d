"""Settings › Audit log."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from apps.people.asking import person_who_may
from apps.people.audit_query import AuditQuery
from apps.people.models import AuditEntry
from apps.people.permissions import Action

PER_PAGE = 100


def audit_log(request: HttpRequest) -> HttpResponse:
    """Who did what, newest first, filtered as the address says."""
    person_who_may(request, Action.READ_AUDIT)
    query = AuditQuery.read(request.GET)
    page = Paginator(query.apply(AuditEntry.objects.all()), PER_PAGE).get_page(query.page)
    context = {
        "query": query,
        "page": page,
        "kinds": AuditEntry.objects.order_by("kind").values_list("kind", flat=True).distinct(),
        "names": AuditEntry.objects.order_by("who").values_list("who", flat=True).distinct()[:500],
    }
    return render(request, "settings/audit.html", context)
