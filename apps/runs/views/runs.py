"""The list of runs, and what is done to several of them at once."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.hosts.models import ELSEWHERE, Host
from apps.people.models import Person
from apps.people.permissions import Action, may
from apps.runs import annotating, launch, steering
from apps.runs.models import Problem, Run, SavedView
from apps.runs.presentation.runs_csv import lines as csv_lines
from apps.runs.presentation.runs_query import COLUMNS, PER_PAGE, STATE_CHOICES, RunsQuery
from apps.runs.presentation.runs_table import rows_needed, rows_of
from apps.runs.refusals import Refused
from apps.runs.views.asking import person_who_may, safe_back
from apps.runs.views.streaming import Streamed

MOST_AT_ONCE = 200


def runs(request: HttpRequest) -> HttpResponse:
    """Every run, filtered, sorted and paged as the address says."""
    person = person_who_may(request, Action.VIEW)
    query = RunsQuery.read(request.GET)
    found = query.apply(rows_needed())
    page = Paginator(found, PER_PAGE).get_page(query.page)
    context = {
        "query": query,
        "rows": rows_of(list(page.object_list)),
        "page": page,
        "columns": COLUMNS,
        "states": STATE_CHOICES,
        "problems": Problem.objects.filter(_has_runs("problem")).values_list("slug", "title"),
        "hosts": Host.objects.exclude(name=ELSEWHERE).values_list("name", flat=True),
        "languages": Run.objects.order_by("language").values_list("language", flat=True).distinct(),
        "coders": Run.objects.order_by("coder").values_list("coder", flat=True).distinct(),
        "views": SavedView.objects.filter(owner=person),
        "people": Person.objects.filter(_has_runs("owner")),
    }
    return render(request, "runs/list.html", context)


def _has_runs(column: str) -> Exists:
    """Whether any run names it: one look into an index for each, where a join would go through every run."""
    return Exists(Run.objects.filter(**{column: OuterRef("pk")}))


def runs_csv(request: HttpRequest) -> Streamed:
    """The same list, all pages of it, as CSV."""
    person_who_may(request, Action.VIEW)
    lean = rows_needed().select_related("sizing").defer("sizing__facts")
    found = RunsQuery.read(request.GET).apply(lean)
    return Streamed(csv_lines(found.iterator(500)), "text/csv; charset=utf-8", "pragma-runs.csv")


@require_POST
def save_view(request: HttpRequest) -> HttpResponse:
    """Keeps the list as it is under a name, or forgets one that was kept."""
    person = person_who_may(request, Action.VIEW)
    back = safe_back(request)
    number = request.POST.get("forget", "")
    if number.isdecimal():
        annotating.forget_view(person, int(number[:12]))
        return redirect(back)
    try:
        view = annotating.save_view(person, request.POST.get("name", ""), back.partition("?")[2])
        messages.success(request, f"Saved as “{view.name}”; it is under Views.", "good")
    except Refused as refusal:
        messages.error(request, refusal.message, "bad")
    return redirect(back)


@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    """Compares, stops or launches again the runs that were selected, all in this one request."""
    chosen = list(
        Run.objects.filter(pk__in=[pk for pk in request.POST.getlist("run") if pk.isdecimal() and len(pk) < 12])
        .select_related("problem", "sizing", "device__host")
        .order_by("id")[:MOST_AT_ONCE]
    )
    if not chosen:
        messages.warning(request, "Select runs first: the box at the left of a row, or x on the keyboard.", "warn")
        return redirect(safe_back(request))
    match request.POST.get("do"):
        case "compare":
            return redirect(f"{reverse('compare-runs')}?runs={','.join(str(run.pk) for run in chosen)}")
        case "stop":
            person = person_who_may(request, Action.STEER)
            outcome = steering.bulk(chosen, lambda run: steering.stop(_allowed(person, Action.STEER, run, run), person))
            _tell(request, "Stopping, keeping the best:", "Not stopped:", outcome)
        case "again":
            person = person_who_may(request, Action.LAUNCH)
            launched: list[Run] = []

            def again(run: Run) -> None:
                launched.append(launch.again(_allowed(person, Action.LAUNCH, run, run.problem), person))

            outcome = steering.bulk(chosen, again)
            _tell(request, "Launched again:", "Not launched:", outcome, [run.pk for run in launched])
    return redirect(safe_back(request))


def _allowed(person: Person, action: Action, run: Run, thing: object) -> Run:
    """The run, if the person may do this to it; one that they may not stops none of the others."""
    if not may(person, action, thing):
        raise Refused(f"Run {run.pk}: your role does not allow it.")
    return run


def _tell(
    request: HttpRequest, done: str, refused: str, outcome: steering.BulkOutcome, made: list[int] | None = None
) -> None:
    """What became of each, in at most two messages."""
    if outcome.done:
        numbers = ", ".join(map(str, outcome.done))
        now = f", now {', '.join(map(str, made))}" if made else ""
        words = f"{done} run{'s' * (len(outcome.done) > 1)} {numbers}{now}."
        messages.success(request, words, "good")
    if outcome.refused:
        messages.warning(request, " ".join([refused, *(why for _, why in outcome.refused)]), "warn")
