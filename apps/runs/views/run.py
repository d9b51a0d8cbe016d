"""One run, live: the page, its parts as they change, its log, and what people tell it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.people.permissions import Action
from apps.runs import steering
from apps.runs.models import Run
from apps.runs.presentation import advice, charts, log, metrics, reasoning, run_page
from apps.runs.presentation.code import code_lines
from apps.runs.presentation.diffs import diff
from apps.runs.presentation.measured import Measured, all_measured
from apps.runs.refusals import Refused
from apps.runs.views.asking import person_who_may

TABS = (("diff", "Diff"), ("code", "Code"), ("checks", "Checks"), ("build", "Build"), ("log", "Log"))
PARTS = ("head", "progress", "work", "metrics", "advice", "roofline")


def run(request: HttpRequest, pk: int) -> HttpResponse:
    """The whole page."""
    found = _run(request, pk)
    context = _context(request, found) | {"lanes": reasoning.lanes(found)}
    return render(request, "runs/run.html", context)


def part(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """One part of the page, for when it changed."""
    if name not in PARTS:
        raise Http404
    return render(request, f"runs/live/{name}.html", _context(request, _run(request, pk)))


@require_POST
def order(request: HttpRequest, pk: int) -> HttpResponse:
    """Stops, pauses, resumes, hints, changes limits; answers with the head as it is then, or goes back to the page."""
    found = _run(request, pk)
    person = person_who_may(request, Action.STEER, found)
    try:
        said = _carry_out(request, found, person)
        messages.success(request, said, "good")
    except (Refused, ValueError) as refusal:
        messages.error(request, getattr(refusal, "message", "A limit must be a number."), "bad")
    if not request.headers.get("HX-Request"):
        return redirect(found)
    return render(request, "runs/live/ordered.html", _context(request, _run(request, pk)))


def _carry_out(request: HttpRequest, found: Run, person: Any) -> str:
    match request.POST.get("do"):
        case "stop":
            steering.stop(found, person, at_once=bool(request.POST.get("at_once")))
            return "Stopping. The best version is kept and still judged in full."
        case "pause":
            steering.pause(found, person)
            return "Pausing after the step in hand."
        case "resume":
            steering.resume(found, person)
            return "Going on."
        case "hint":
            steering.hint(found, person, request.POST.get("text", ""))
            return "Your hint joins the next prompt."
        case "limits":
            iterations, seconds = request.POST.get("iterations"), request.POST.get("minutes")
            limits = steering.Limits(int(iterations) if iterations else None, float(seconds) * 60 if seconds else None)
            steering.change_limits(found, person, limits)
            return "Limits changed; they hold from the next step on."
    raise Refused("There is no such order. Use the buttons of the page.")


def log_download(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """The log as text: what the search and the level leave, or all of it."""
    found = _run(request, pk)
    answer = StreamingHttpResponse(
        log.log_text(found, log.LogQuery.read(request.GET)), content_type="text/plain; charset=utf-8"
    )
    answer["Content-Disposition"] = f'attachment; filename="pragma-run-{pk}.log"'
    return answer


def _run(request: HttpRequest, pk: int) -> Run:
    related = ("problem", "sizing", "device__host", "owner", "best", "result", "twin", "twin_of")
    found = get_object_or_404(Run.objects.select_related(*related), pk=pk)
    person_who_may(request, Action.VIEW, found)
    return found


def _context(request: HttpRequest, found: Run) -> dict[str, Any]:
    versions = all_measured(found.versions.select_related("measurement", "parent"))
    pair = run_page.pair(found, versions, request.GET.get("v", ""), request.GET.get("against", ""))
    speed = charts.speedup_chart(versions, found.compiled_speedup, found.best.number if found.best else None)
    roofs = charts.roofline_chart(_roof_points(versions, pair))
    tab = request.GET.get("tab", "diff")
    return {
        "run": found,
        "head": run_page.head(found),
        "iterations": run_page.iterations(found, versions),
        "versions": versions,
        "pair": pair,
        "tabs": TABS,
        "tab": tab if tab in dict(TABS) else "diff",
        "view": "split" if request.GET.get("view") == "split" else "unified",
        "speedup_chart": speed,
        "speedup_data": asdict(speed),
        "roofline_chart": roofs,
        "roofline_data": asdict(roofs) if roofs else None,
        "rows": metrics.rows_against(pair.against.evaluation if pair.against else None, pair.current.evaluation)
        if pair
        else [],
        "advices": advice.cards(found.advices.all()),
        **_work(request, found, pair, tab),
    }


def _work(request: HttpRequest, found: Run, pair: run_page.Pair | None, tab: str) -> dict[str, Any]:
    """What the open tab shows."""
    if tab == "log":
        query = log.LogQuery.read(request.GET)
        return {"log_query": query, "page": log.log_page(found, query), "levels": log.LEVELS, "agents": log.AGENTS}
    if pair is None:
        return {}
    current = pair.current
    if tab == "code":
        remarks = current.evaluation.profile.remarks if current.evaluation else ()
        return {"code": code_lines(current.version.source, remarks)}
    if tab in ("checks", "build"):
        return {}
    left = pair.against.version.source if pair.against else found.problem.source
    return {"diff": diff(left, current.version.source)}


def _roof_points(versions: list[Measured], pair: run_page.Pair | None) -> list[tuple[str, Any, str]]:
    if pair is None:
        return []
    shown = [(pair.against, "before")] if pair.against else []
    return [(one.name, one.evaluation, tone) for one, tone in [*shown, (pair.current, "now")]]
