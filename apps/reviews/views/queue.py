"""The queue of reviews, and putting a version up for review."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from apps.hosts.models import Device
from apps.people.asking import person_who_may
from apps.people.models import Person
from apps.people.permissions import Action
from apps.people.refusals import Refused
from apps.reviews import evidence, proposing
from apps.reviews.models import Proposal
from apps.reviews.presentation import propose_page, queue
from apps.runs.models import Version
from apps.runs.presentation import comparison


def reviews(request: HttpRequest) -> HttpResponse:
    """What waits, by whom it waits for."""
    person = person_who_may(request, Action.VIEW)
    query = queue.QueueQuery.read(request.GET)
    page = Paginator(query.apply(person), queue.PER_PAGE).get_page(query.page)
    counts = queue.counts(person)
    context = {
        "query": query,
        "rows": queue.rows(page.object_list),  # type: ignore[arg-type]
        "page": page,
        "tabs": [(tab, title, counts.get(tab)) for tab, title in queue.TABS],
        "problems": queue.problems(),
    }
    return render(request, "reviews/list.html", context)


def propose(request: HttpRequest) -> HttpResponse:
    """The form, for the version that the address names; puts it up for review when sent."""
    version = _version(request)
    person = person_who_may(request, Action.PROPOSE, version)
    device = _device(request, version)
    if request.method == "POST":
        try:
            return redirect(_propose(request, person, version, device))
        except evidence.NeedsFullMeasurement as missing:
            messages.error(request, missing.message, "bad")
        except Refused as refusal:
            messages.error(request, refusal.message, "bad")
    context = propose_page.context(version, device, person)
    context["given"] = request.POST
    context["asked"] = request.POST.getlist("asked")
    return render(request, "reviews/new.html", context, status=422 if request.method == "POST" else 200)


def _propose(request: HttpRequest, person: Person, version: Version, device: Device) -> Proposal:
    note, into = request.POST.get("note", ""), request.POST.get("into", "")
    if into.isdecimal():
        return proposing.revise(int(into), person, version, note).proposal
    asked = Person.objects.filter(pk__in=[key for key in request.POST.getlist("asked") if key.isdecimal()])
    return proposing.propose(person, version, device, note, asked)


def _version(request: HttpRequest) -> Version:
    found = comparison.find(request.GET.get("version", ""))
    if found is None:
        raise Http404("There is no such version.")
    return found


def _device(request: HttpRequest, version: Version) -> Device:
    """The device chosen, else the run's own."""
    host, _, name = request.GET.get("device", "").partition("/")
    chosen = Device.objects.select_related("host").filter(host__name=host, name=name).first()
    return chosen or version.run.device
