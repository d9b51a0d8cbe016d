"""The list of runs, and what is done to several of them at once."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.hosts.models import ELSEWHERE, Host
from apps.people.models import Person
from apps.people.permissions import Action
from apps.runs import launch, steering
from apps.runs.models import Problem, Run
from apps.runs.presentation.runs_query import COLUMNS, PER_PAGE, STATE_CHOICES, RunsQuery
from apps.runs.presentation.runs_table import rows_of
from apps.runs.views.asking import person_who_may, safe_back


def runs(request: HttpRequest) -> HttpResponse:
    """Every run, filtered, sorted and paged as the address says."""
    person_who_may(request, Action.VIEW)
    query = RunsQuery.read(request.GET)
    found = query.apply(Run.objects.select_related("problem", "device__host", "owner", "best"))
    page = Paginator(found, PER_PAGE).get_page(query.page)
    context = {
        "query": query,
        "rows": rows_of(list(page.object_list)),
        "page": page,
        "columns": COLUMNS,
        "states": STATE_CHOICES,
        "problems": Problem.objects.filter(runs__isnull=False).distinct().values_list("slug", "title"),
        "hosts": Host.objects.exclude(name=ELSEWHERE).values_list("name", flat=True),
        "languages": Run.objects.order_by("language").values_list("language", flat=True).distinct(),
        "coders": Run.objects.order_by("coder").values_list("coder", flat=True).distinct(),
        "people": Person.objects.filter(runs__isnull=False).distinct(),
    }
    return render(request, "runs/list.html", context)


@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    """Compares, stops or launches again the runs that were selected."""
    chosen = list(
        Run.objects.filter(pk__in=[pk for pk in request.POST.getlist("run") if pk.isdecimal()]).order_by("id")
    )
    if not chosen:
        messages.warning(request, "Select runs first: the box at the left of a row, or x on the keyboard.", "warn")
        return redirect(safe_back(request))
    match request.POST.get("do"):
        case "compare":
            return redirect(f"{reverse('compare-runs')}?runs={','.join(str(run.pk) for run in chosen)}")
        case "stop":
            _tell(request, "Stopping", steering.bulk(chosen, lambda run: steering.stop(run, _steerer(request, run))))
        case "again":
            _tell(
                request, "Launched again", steering.bulk(chosen, lambda run: launch.again(run, _launcher(request, run)))
            )
    return redirect(safe_back(request))


def _steerer(request: HttpRequest, run: Run) -> Person:
    return person_who_may(request, Action.STEER, run)


def _launcher(request: HttpRequest, run: Run) -> Person:
    return person_who_may(request, Action.LAUNCH, run.problem)


def _tell(request: HttpRequest, word: str, outcome: steering.BulkOutcome) -> None:
    if outcome.done:
        messages.success(
            request, f"{word}: run{'s' * (len(outcome.done) > 1)} {', '.join(map(str, outcome.done))}.", "good"
        )
    for _, why in outcome.refused:
        messages.warning(request, why, "warn")
