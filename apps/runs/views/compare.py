"""Two versions side by side, or several runs."""

from __future__ import annotations

from dataclasses import asdict

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from apps.people.permissions import Action
from apps.runs.models import Run, Version
from apps.runs.presentation import charts, comparison, extensions, figures, metrics, twins, versions_table
from apps.runs.presentation.diffs import diff
from apps.runs.presentation.runs_table import rows_of
from apps.runs.views.asking import person_who_may

MOST_RUNS = 6


def compare(request: HttpRequest) -> HttpResponse:
    """Versions `a` and `b` (each RUN.NUMBER, one may be reference); `against` leads `b` to the address of such a pair."""
    person_who_may(request, Action.VIEW)
    left_key, right_key = request.GET.get("a", ""), request.GET.get("b", "")
    swapped = right_key == comparison.REFERENCE
    anchor = comparison.find(left_key if swapped else right_key)
    if anchor is None:
        if left_key or right_key:
            raise Http404("There is no such version.")
        return render(request, "compare/choose.html")
    if against := request.GET.get("against", ""):
        return redirect(_with_both_named(request, comparison.other_side(anchor, against)))
    other = None if swapped else comparison.find(left_key)
    if other is None and not swapped and left_key not in ("", comparison.REFERENCE):
        raise Http404("There is no such version.")
    if other is not None and other.run.problem_id != anchor.run.problem_id:
        raise Http404("Two versions are compared that solve the same problem; these don't.")
    sides = [comparison.side(other, anchor), comparison.side(anchor, anchor)]
    left, right = sides[::-1] if swapped else sides
    before, after = (one.measured.evaluation if one.measured else None for one in (left, right))
    roofs = charts.roofline_chart([(left.name, before, "before"), (right.name, after, "now")])
    context = {
        "left": left,
        "right": right,
        "problem": anchor.run.problem,
        "candidates": comparison.candidates_for(anchor, other),
        "anchors": extensions.anchors_of(anchor),
        "verdict": comparison.verdict(left, right),
        "facts": comparison.facts(left, right),
        "rows": metrics.rows_against(before, after),
        "diff": diff(left.source, right.source),
        "view": request.GET["view"] if request.GET.get("view") in ("unified", "split") else "auto",
        "environments": comparison.environments(left, right) if left.measured and right.measured else None,
        "roofline_chart": roofs,
        "roofline_data": asdict(roofs) if roofs else None,
    }
    return render(request, "compare/compare.html", context)


def _with_both_named(request: HttpRequest, other: Version | None) -> str:
    """The address with both sides named: what is the best or the accepted one today may be another tomorrow."""
    query = request.GET.copy()
    del query["against"]
    query["a"] = comparison.key_of(other) if other is not None else comparison.REFERENCE
    return f"{request.path}?{query.urlencode(safe='.')}"


def compare_runs(request: HttpRequest) -> HttpResponse:
    """Runs beside each other: settings, results, and the way each took."""
    person_who_may(request, Action.VIEW)
    keys = [key for key in request.GET.get("runs", "").split(",") if key.isdecimal()][:MOST_RUNS]
    found = list(
        Run.objects.filter(pk__in=keys).select_related(
            "problem", "sizing", "device__host", "owner", "best", "result", "twin", "twin_of"
        )
    )
    found.sort(key=lambda run: keys.index(str(run.pk)))
    rows = rows_of(found)
    pair = twins.twins_of(found[0]) if len(found) == 2 else None
    if pair is not None and {pair.on.pk, pair.off.pk} != {run.pk for run in found}:
        pair = None
    names = [f"run {run.pk}" + (f", profile {'on' if run.profile else 'off'}" if pair else "") for run in found]
    ways = twins.ways_there(found, names)
    axis = "time" if request.GET.get("axis") == "time" else "iterations"
    context = {
        "rows": rows,
        "settings": comparison.settings_of(found),
        "twins": pair,
        "ways": ways,
        "axis": axis,
        "ways_data": {"axis": axis, "ways": [asdict(way) for way in ways]},
        "words": "; ".join(
            f"{way.name}: best {figures.ratio(way.last.ratio if way.last else 1.0)} after {way.tried} versions"
            for way in ways
        ),
        "bests": [f"{run.pk}.{run.best.number}" for run in found if run.best],
    }
    return render(request, "compare/runs.html", context)


def compare_versions(request: HttpRequest) -> HttpResponse:
    """Versions `v` (each RUN.NUMBER) of one problem as a table, each held against the first."""
    person_who_may(request, Action.VIEW)
    keys = [key for part in request.GET.getlist("v") for key in part.split(",")]
    shown = versions_table.columns(keys)
    rows = versions_table.figures_of(shown)
    context = {
        "columns": shown,
        "rows": [row for row in rows if row.differs],
        "same": [row for row in rows if not row.differs],
        "environment": versions_table.environment_of(shown),
        "problem": shown[0].measured.version.run.problem if shown else None,
        "candidates": comparison.candidates_for(*(column.measured.version for column in shown)) if shown else [],
        "most": versions_table.MOST,
    }
    return render(request, "compare/versions.html", context)
