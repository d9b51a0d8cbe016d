"""One run, live: the page, its parts as they change, its log, and what people tell it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from apps.people.models import Person
from apps.people.permissions import Action
from apps.runs import annotating, steering
from apps.runs.models import Run
from apps.runs.presentation import advice, charts, lineage, log, metrics, picking, reasoning, run_page, timeline, twins
from apps.runs.presentation.code import code_lines
from apps.runs.presentation.diffs import diff
from apps.runs.presentation.measured import Measured, all_measured, load
from apps.runs.refusals import Refused
from apps.runs.transcripts.importing import imported
from apps.runs.views.asking import person_who_may
from apps.runs.views.streaming import Streamed

TABS = (
    ("diff", "Diff"),
    ("code", "Code"),
    ("checks", "Checks"),
    ("build", "Build"),
    ("lineage", "Lineage"),
    ("log", "Log"),
)


def run(request: HttpRequest, pk: int) -> HttpResponse:
    """The whole page."""
    seen = _Seen(request, _run(request, pk))
    context = {"run": seen.run, "lanes": reasoning.lanes(seen.run), "limits": run_page.limits_as_typed(seen.run)}
    for part_context in PARTS.values():
        context |= part_context(seen)
    return render(request, "runs/run.html", context)


def part(request: HttpRequest, pk: int, name: str) -> HttpResponse:
    """One part of the page, for when it changed."""
    if name not in PARTS:
        raise Http404
    seen = _Seen(request, _run(request, pk))
    return render(request, f"runs/live/{name}.html", {"run": seen.run} | PARTS[name](seen))


@require_POST
def order(request: HttpRequest, pk: int) -> HttpResponse:
    """Stops, pauses, resumes, hints, changes limits; answers with the head as it is then, or goes back to the page."""
    found = _run(request, pk)
    person = person_who_may(request, Action.STEER, found)
    try:
        messages.success(request, _carry_out(request, found, person), "good")
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
    except ValueError:
        messages.error(request, "A limit must be a number.", "bad")
    if not request.headers.get("HX-Request"):
        return redirect(found)
    now = _run(request, pk)
    return render(request, "runs/live/ordered.html", {"run": now, "head": run_page.head(now), "imported": None})


def _carry_out(request: HttpRequest, found: Run, person: Person) -> str:
    match request.POST.get("do"):
        case "stop":
            at_once = bool(request.POST.get("at_once"))
            steering.stop(found, person, at_once=at_once)
            return "Stopping at once." if at_once else "Stopping. The best version is kept and still judged in full."
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
            steering.change_limits(found, person, _limits(found, request.POST))
            return "Limits changed; they hold from the next step on."
    raise Refused("There is no such order. Use the buttons of the page.")


@require_POST
def annotate(request: HttpRequest, pk: int) -> HttpResponse:
    """Writes tags and notes on the run."""
    found = _run(request, pk)
    person_who_may(request, Action.STEER, found)
    try:
        annotating.annotate(found, tags=request.POST.get("tags", ""), notes=request.POST.get("notes", ""))
        messages.success(request, "Tags and notes are written down.", "good")
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
    return redirect(found)


def _limits(found: Run, posted: QueryDict) -> steering.Limits:
    """The limits as typed; what is empty, or as the run has it, stays. Raises `ValueError` for what is no number."""
    shown = asdict(run_page.limits_as_typed(found))
    typed = {name: posted.get(name, "").strip() for name in shown}
    iterations, minutes, dollars, tokens = ("" if typed[name] == shown[name] else typed[name] for name in shown)
    seconds = float(minutes) * 60 if minutes else None
    if seconds is not None and not math.isfinite(seconds):
        raise ValueError
    try:
        money = Decimal(dollars) if dollars else None
    except InvalidOperation:
        raise ValueError from None
    if money is not None and not money.is_finite():
        raise ValueError
    return steering.Limits(int(iterations) if iterations else None, seconds, money, int(tokens) if tokens else None)


def said(request: HttpRequest, pk: int, seq: int) -> HttpResponse:
    """All that was said in one finished step: reasoning, answer and, where a model was asked, the prompt."""
    found = _run(request, pk)
    event = get_object_or_404(found.events.filter(kind="step_ended"), seq=seq)
    by_model = bool((event.data.get("usage") or {}).get("model"))
    context = {"run": found, "said": reasoning.said(found, event), "by_model": by_model}
    return render(request, "runs/said.html", context)


def log_download(request: HttpRequest, pk: int) -> Streamed:
    """The log as text: what the search and the level leave, or all of it."""
    found = _run(request, pk)
    lines = log.log_text(found, log.LogQuery.read(request.GET))
    return Streamed(lines, "text/plain; charset=utf-8", f"pragma-run-{pk}.log")


def _run(request: HttpRequest, pk: int) -> Run:
    related = ("problem", "sizing", "device__host", "owner", "best", "result", "twin", "twin_of")
    found = get_object_or_404(Run.objects.select_related(*related), pk=pk)
    person_who_may(request, Action.VIEW, found)
    return found


# --- what each part shows -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Seen:
    """A run as one request looks at it: its versions are read only where a part needs them."""

    request: HttpRequest
    run: Run

    @cached_property
    def versions(self) -> list[Measured]:
        return all_measured(self.run.versions.order_by("number"))

    @cached_property
    def pair(self) -> run_page.Pair | None:
        asked = self.request.GET
        found = run_page.pair(self.run, self.versions, asked.get("v", ""), asked.get("against", ""))
        if found is not None:
            load((found.current, found.against))
        return found


def _head(seen: _Seen) -> dict[str, Any]:
    return {"head": run_page.head(seen.run), "imported": imported(seen.run)}


def _progress(seen: _Seen) -> dict[str, Any]:
    best = seen.run.best.number if seen.run.best else None
    shown = seen.pair.current if seen.pair and "v" in seen.request.GET else None
    stretch = timeline.timeline(seen.run, seen.versions, _number(seen.request.GET.get("until", "")), shown)
    chart = charts.speedup_chart(seen.versions, seen.run.compiled_speedup, best)
    return {
        "versions": seen.versions,
        "pair": seen.pair,
        "timeline": stretch,
        "iterations": stretch.iterations,
        "speedup_chart": chart,
        "speedup_data": asdict(chart),
    }


def _work(seen: _Seen) -> dict[str, Any]:
    asked, pair = seen.request.GET, seen.pair
    tab = asked.get("tab", "diff") if asked.get("tab") in dict(TABS) else "diff"
    view = "split" if asked.get("view") == "split" else "unified"
    context: dict[str, Any] = {"versions": seen.versions, "pair": pair, "tabs": TABS, "tab": tab, "view": view}
    if tab == "log":
        query = log.LogQuery.read(asked)
        shown = {"log_query": query, "page": log.log_page(seen.run, query), "levels": log.LEVELS, "agents": log.AGENTS}
        return context | shown
    if pair is None or tab in ("checks", "build"):
        return context
    current = pair.current
    if tab == "lineage":
        return context | {"lineage": lineage.lineage(seen.versions, current.version)}
    if tab == "code":
        remarks = current.evaluation.profile.remarks if current.evaluation else ()
        return context | {"code": code_lines(current.version.source, remarks)}
    left = pair.against.version.source if pair.against else seen.run.problem.source
    named = picking.worth_naming([one.version for one in seen.versions], [current.version.number])
    menu = {"named": named, "unnamed": len(seen.versions) - len(named)}
    return context | menu | {"diff": diff(left, current.version.source)}


def _metrics(seen: _Seen) -> dict[str, Any]:
    pair = seen.pair
    if pair is None:
        return {"pair": None, "rows": [], "others": []}
    before = pair.against.evaluation if pair.against else None
    rows, others = metrics.at_a_glance(metrics.rows_against(before, pair.current.evaluation))
    return {"pair": pair, "rows": rows, "others": others}


def _advice(seen: _Seen) -> dict[str, Any]:
    return {"advices": advice.advices_of(seen.run, _number(seen.request.GET.get("advice", "")))}


def _roofline(seen: _Seen) -> dict[str, Any]:
    pair = seen.pair
    sides = [(pair.against, "before"), (pair.current, "now")] if pair else []
    roofs = charts.roofline_chart([(one.name, one.evaluation, tone) for one, tone in sides if one])
    return {"roofline_chart": roofs, "roofline_data": asdict(roofs) if roofs else None}


def _twin(seen: _Seen) -> dict[str, Any]:
    pair = twins.twins_of(seen.run)
    axis = "time" if seen.request.GET.get("axis") == "time" else "iterations"
    data = {"axis": axis, "ways": [asdict(way) for way in pair.ways]} if pair else None
    return {"twins": pair, "axis": axis, "ways_data": data}


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 else None


PARTS: dict[str, Callable[[_Seen], dict[str, Any]]] = {
    "head": _head,
    "progress": _progress,
    "work": _work,
    "metrics": _metrics,
    "advice": _advice,
    "roofline": _roofline,
    "twin": _twin,
}
