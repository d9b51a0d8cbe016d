"""Problems: the list, and one with its facts, its best versions and its runs."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from apps.people.permissions import Action
from apps.runs.forms import overrides_of
from apps.runs.models import Origin, Problem
from apps.runs.presentation import extensions, launch_page, problems_page
from apps.runs.presentation.code import code_lines
from apps.runs.presentation.runs_table import rows_of
from apps.runs.views.asking import person_who_may

PER_PAGE = 100


def problems(request: HttpRequest) -> HttpResponse:
    """Every problem that is not hidden, filtered as the address says."""
    person_who_may(request, Action.VIEW)
    query = problems_page.ProblemQuery.read(request.GET)
    shown = Problem.objects.filter(hidden=False)
    page = Paginator(query.apply(Problem.objects.all()), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "query": query,
        "page": page,
        "rows": problems_page.rows(page.object_list),  # type: ignore[arg-type]
        "levels": shown.exclude(level=None).order_by("level").values_list("level", flat=True).distinct(),
        "categories": shown.exclude(category="").order_by("category").values_list("category", flat=True).distinct(),
        "origins": Origin.choices,
        "more_columns": list(extensions.problem_columns.values()),
    }
    return render(request, "problems/list.html", context)


def problem(request: HttpRequest, slug: str) -> HttpResponse:
    """One problem: reference, facts, champions, runs."""
    found = get_object_or_404(Problem, slug=slug)
    person_who_may(request, Action.VIEW, found)
    looked = launch_page.look_at(found, overrides_of(request.GET))
    context = {
        "problem": found,
        "looked": looked,
        "tensors": launch_page.tensors(looked.facts) if looked.facts else (),
        "code": code_lines(found.source),
        "champions": problems_page.champions(found),
        "rows": rows_of(problems_page.runs_of(found)),
    }
    return render(request, "problems/problem.html", context)


def problem_source(request: HttpRequest, slug: str) -> HttpResponse:
    """The reference as a file."""
    found = get_object_or_404(Problem, slug=slug)
    person_who_may(request, Action.VIEW, found)
    answer = HttpResponse(found.source, content_type="text/x-python; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{found.slug}.py"'
    return answer
