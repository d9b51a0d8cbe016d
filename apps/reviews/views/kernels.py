"""Accepted kernels: the catalogue, one of them, its files, and what is done to it."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.hosts.models import Device
from apps.people.asking import person_who_may
from apps.people.permissions import Action
from apps.people.refusals import Refused
from apps.reviews import evidence, revoking, verifying
from apps.reviews.export.bundle import bundle
from apps.reviews.export.contents import contents_of, stem_of
from apps.reviews.export.fetching import client_text, one_liner
from apps.reviews.export.standalone import needs, standalone
from apps.reviews.models import AcceptedKernel
from apps.reviews.presentation import kernels_page
from apps.runs.models import Problem
from apps.runs.presentation import version_page
from apps.runs.presentation.code import code_lines
from apps.runs.presentation.gains import cost_of_gains_of
from apps.runs.presentation.measured import measured
from apps.runs.presentation.runs_table import spend


def kernels(request: HttpRequest) -> HttpResponse:
    """The catalogue, filtered as the address says."""
    person_who_may(request, Action.VIEW)
    query = kernels_page.KernelsQuery.read(request.GET)
    page = Paginator(query.apply(), kernels_page.PER_PAGE).get_page(query.page)
    context = {
        "query": query,
        "rows": kernels_page.rows(page.object_list),  # type: ignore[arg-type]
        "page": page,
        "states": kernels_page.STATES,
        "problems": Problem.objects.filter(kernels__isnull=False).distinct().values_list("slug", "title"),
        "devices": [str(one) for one in Device.objects.filter(kernels__isnull=False).distinct().select_related("host")],
        "languages": AcceptedKernel.objects.order_by("language").values_list("language", flat=True).distinct(),
    }
    return render(request, "kernels/list.html", context)


def kernel(request: HttpRequest, pk: int) -> HttpResponse:
    """One kernel: code, evidence, who and when, what became of it."""
    found = _kernel(request, pk)
    one = measured(found.version, found.measurement)
    address = request.build_absolute_uri("/").rstrip("/")
    same = {"problem": found.problem, "sizing": found.sizing, "device": found.device, "language": found.language}
    context = {
        "kernel": found,
        "row": kernels_page.row_of(found),
        "one": one,
        "run": found.version.run,
        "spent": spend(found.version.run),
        "per_gain": cost_of_gains_of(found.version.run),
        "tiles": version_page.tiles(one),
        "code": code_lines(found.version.source, one.evaluation.profile.remarks if one.evaluation else ()),
        "environment": sorted(found.environment.items()),
        "decisions": found.proposal.decisions.select_related("by"),
        "checks": found.checks.select_related("measurement__asked_by").order_by("-id"),
        "others": kernels_page.rows(AcceptedKernel.objects.filter(**same).exclude(pk=found.pk)),
        "checking": [job for job in evidence.measuring(found.version) if job.device_id == found.device_id],
        "one_liner": one_liner(found, address),
        "stem": stem_of(found),
        "needs": needs(found.version.source),
    }
    return render(request, "kernels/kernel.html", context)


def kernel_file(request: HttpRequest, pk: int) -> HttpResponse:
    """The kernel as one file that runs with torch and a compiler alone."""
    found = _kernel(request, pk)
    try:
        file = standalone(contents_of(found, request.build_absolute_uri(found.get_absolute_url())))
    except Refused as refusal:
        return _refused(request, found, refusal)
    return _download(file.text.encode(), file.name, "text/x-python; charset=utf-8")


def kernel_bundle(request: HttpRequest, pk: int) -> HttpResponse:
    """The kernel with everything that is known of it, as a zip."""
    found = _kernel(request, pk)
    try:
        packed = bundle(found, request.build_absolute_uri(found.get_absolute_url()))
    except Refused as refusal:
        return _refused(request, found, refusal)
    return _download(packed.content, packed.name, "application/zip")


def client(request: HttpRequest) -> HttpResponse:
    """The small client that fetches accepted kernels."""
    person_who_may(request, Action.VIEW)
    text = client_text(request.build_absolute_uri("/").rstrip("/"))
    return _download(text.encode(), "pragma_kernel.py", "text/x-python; charset=utf-8")


@require_POST
def do(request: HttpRequest, pk: int) -> HttpResponse:
    """Verify it once more, or revoke it."""
    found = _kernel(request, pk)
    try:
        if request.POST.get("do") == "revoke":
            person = person_who_may(request, Action.REVOKE, found)
            revoking.revoke(found.pk, person, request.POST.get("reason", ""))
            messages.success(request, "Revoked. Nothing takes its place until another kernel is accepted.", "good")
        else:
            verifying.verify(found, person_who_may(request, Action.REMEASURE, found.version))
            messages.success(request, f"{found.device} judges it once more in full; the result shows here.", "good")
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
    return redirect(reverse("kernel", args=[pk]))


def _kernel(request: HttpRequest, pk: int) -> AcceptedKernel:
    related = ("problem", "sizing", "device__host", "version__run__problem", "version__parent", "measurement", "by")
    more = ("proposal__problem", "proposal__sizing", "proposal__device__host", "proposal__by", "superseded_by")
    found = get_object_or_404(AcceptedKernel.objects.select_related(*related, *more), pk=pk)
    person_who_may(request, Action.VIEW, found)
    return found


def _refused(request: HttpRequest, found: AcceptedKernel, refusal: Refused) -> HttpResponse:
    messages.error(request, refusal.message, "bad")
    return redirect(found)


def _download(content: bytes, name: str, media: str) -> HttpResponse:
    answer = HttpResponse(content, content_type=media)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer
