"""One version of a run: its code, what was measured, and measuring it again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.hosts.models import Device
from apps.people.permissions import Action
from apps.runs import remeasure
from apps.runs.models import Version
from apps.runs.presentation import advice, charts, extensions, launch_page, lineage, metrics, picking, version_page
from apps.runs.presentation.code import code_lines
from apps.runs.presentation.measured import Measured, all_measured, measured
from apps.runs.refusals import Refused
from apps.runs.views.asking import person_who_may

TABS = (
    ("code", "Code"),
    ("profile", "Profile"),
    ("advice", "Advice"),
    ("build", "Build"),
    ("checks", "Checks"),
    ("lineage", "Lineage"),
    ("environment", "Environment"),
)


def version(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The page, by tab; `measurement` in the address shows an earlier one than the latest."""
    found = _version(request, pk, number)
    past = request.GET.get("measurement", "")
    chosen = found.measurements.filter(pk=past).first() if past.isdecimal() else None
    one = measured(found, chosen)
    tab = request.GET.get("tab", "code")
    tab = tab if tab in dict(TABS) else "code"
    siblings = all_measured(found.run.versions.order_by("number"))
    named = picking.worth_naming([other.version for other in siblings], [number])
    context = {
        "version": found,
        "run": found.run,
        "one": one,
        "tab": tab,
        "tabs": TABS,
        "tiles": version_page.tiles(one),
        "pasts": version_page.pasts(found),
        "siblings": named,
        "unnamed": len(siblings) - len(named),
        "anchors": extensions.anchors_of(found),
        "devices": launch_page.device_choices(found.run.language),
        "again_in_flight": remeasure_jobs(found),
    }
    return render(request, "versions/version.html", context | _of_tab(tab, found, one, siblings))


def _of_tab(tab: str, found: Version, one: Measured, siblings: list[Measured]) -> dict[str, Any]:
    evaluation = one.evaluation
    match tab:
        case "code":
            return {"code": code_lines(found.source, evaluation.profile.remarks if evaluation else ())}
        case "profile":
            roofs = charts.roofline_chart([(one.name, evaluation, "now")])
            return {
                "bars": version_page.speed_of_light(evaluation),
                "rows": metrics.rows_against(None, evaluation),
                "roofline_chart": roofs,
                "roofline_data": asdict(roofs) if roofs else None,
            }
        case "advice":
            rows = found.run.advices.filter(Q(number=found.advice) | Q(advice__base=found.number))
            cards = advice.cards(rows, over=not found.run.is_live)
            return {
                "led": [c for c in cards if c.number == found.advice],
                "given": [c for c in cards if c.base == found.number],
            }
        case "lineage":
            return {"lineage": lineage.lineage(siblings, found)}
        case "environment":
            return {"environment": version_page.environment(evaluation)}
    return {}


def remeasure_jobs(found: Version) -> list[str]:
    """Devices that are measuring this version again now."""
    live = ("waiting", "sent", "running")
    devices = Device.objects.filter(jobs__key__startswith=f"again:{found.pk}:", jobs__state__in=live)
    return [str(device) for device in devices.select_related("host").distinct()]


@require_POST
def again(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """Has a host judge the version once more, in full."""
    found = _version(request, pk, number)
    person = person_who_may(request, Action.REMEASURE, found)
    host, _, name = request.POST.get("device", "").partition("/")
    device = Device.objects.select_related("host").filter(host__name=host, name=name).first()
    if device is None:
        messages.error(request, "Choose the host that is to measure it again.", "bad")
        return redirect(found)
    try:
        remeasure.measure_again(person, found, device)
        messages.success(request, f"{device} measures v{number} again; the result shows here when it is there.", "good")
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
    return redirect(found)


def version_source(request: HttpRequest, pk: int, number: int) -> HttpResponse:
    """The candidate as a file that runs with torch and a compiler alone."""
    found = _version(request, pk, number)
    answer = HttpResponse(found.source, content_type="text/x-python; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{found.run.problem.slug}-run{pk}-v{number}.py"'
    return answer


def _version(request: HttpRequest, pk: int, number: int) -> Version:
    related = ("run__problem", "run__sizing", "run__device__host", "run__best", "run__result", "measurement", "parent")
    found = get_object_or_404(Version.objects.select_related(*related), run_id=pk, number=number)
    person_who_may(request, Action.VIEW, found)
    return found
