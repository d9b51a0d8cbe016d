"""Hosts: the list, and one with its ceilings, its queue and its faults."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.hosts import presentation, registry
from apps.hosts.models import Host
from apps.people.asking import person_who_may
from apps.people.permissions import Action


def hosts(request: HttpRequest) -> HttpResponse:
    """Every host, with what it is doing now."""
    person_who_may(request, Action.VIEW)
    return render(request, "hosts/list.html", {"rows": presentation.rows()})


def host(request: HttpRequest, name: str) -> HttpResponse:
    """One host."""
    found = get_object_or_404(Host, name=name)
    person_who_may(request, Action.VIEW, found)
    row = presentation.rows([found])[0]
    report = row.report
    context = {
        "row": row,
        "host": row.host,
        "report": report,
        "bandwidth": presentation.bandwidth_table(report) if report else None,
        "roof_data": presentation.roof_data(report) if report else None,
        "queue": presentation.queue(found),
        "faults": found.faults.select_related("job")[:20],
        "measuring": registry.host_is_measuring(found),
    }
    return render(request, "hosts/host.html", context)


@require_POST
def operate(request: HttpRequest, name: str) -> HttpResponse:
    """Drains or enables a host, measures its ceilings anew, or lets it judge with weak isolation."""
    found = get_object_or_404(Host, name=name)
    match request.POST.get("do"):
        case "drain":
            registry.drain(found, person_who_may(request, Action.OPERATE_HOST, found))
            messages.success(request, f"{name} drains: what runs there ends, nothing new is sent.", "good")
        case "enable":
            registry.enable(found, person_who_may(request, Action.OPERATE_HOST, found))
            messages.success(request, f"{name} takes work again.", "good")
        case "measure":
            registry.measure(found, person_who_may(request, Action.OPERATE_HOST, found))
            messages.success(request, f"{name} measures its ceilings anew when it is idle.", "good")
        case "allow-weak":
            registry.allow_weak_isolation(found, person_who_may(request, Action.ALLOW_WEAK_ISOLATION, found))
            messages.warning(
                request, f"{name} may judge with the isolation it has; that is kept under your name.", "warn"
            )
        case "forbid-weak":
            registry.forbid_weak_isolation(found, person_who_may(request, Action.ALLOW_WEAK_ISOLATION, found))
            messages.success(request, f"{name} refuses candidates again until it can isolate them.", "good")
        case _:
            person_who_may(request, Action.OPERATE_HOST, found)
            messages.error(request, "There is no such order. Use the buttons of the page.", "bad")
    return redirect("host", name=name)
