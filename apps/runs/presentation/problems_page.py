"""Problems: the list with what has been reached for each, and one problem with its best version per device."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Max, Q, QuerySet
from django.http import QueryDict

from apps.kernels.facts import ProblemFacts
from apps.runs.models import Measurement, Origin, Problem, Run, Sizing
from apps.runs.presentation import extensions, figures
from apps.runs.presentation.launch_page import facts_of
from apps.runs.presentation.measured import Measured, measured
from apps.runs.presentation.runs_table import rows_needed


@dataclass(frozen=True)
class ProblemQuery:
    """Filters of the list of problems."""

    search: str = ""
    level: str = ""
    category: str = ""
    origin: str = ""

    @classmethod
    def read(cls, query: QueryDict) -> ProblemQuery:
        """The query of an address."""
        return cls(
            query.get("q", "").strip(), query.get("level", ""), query.get("category", ""), query.get("source", "")
        )

    @property
    def filtered(self) -> bool:
        """Whether anything narrows the list."""
        return any((self.search, self.level, self.category, self.origin))

    def apply(self, problems: QuerySet[Problem]) -> QuerySet[Problem]:
        """The problems that match, by level and title."""
        match = Q(hidden=False)
        if self.level.isdecimal():
            match &= Q(level=int(self.level))
        if self.category:
            match &= Q(category=self.category)
        if self.origin in Origin.values:
            match &= Q(origin=self.origin)
        for word in self.search.split():
            match &= Q(title__icontains=word) | Q(slug__icontains=word) | Q(description__icontains=word)
        return problems.filter(match).order_by("level", "title")


@dataclass(frozen=True)
class ProblemRow:
    """One problem of the list."""

    problem: Problem
    facts: ProblemFacts | None
    state: str
    refusal: str
    runs: int
    best: float | None
    more: tuple[extensions.Cell | None, ...] = ()


@dataclass(frozen=True)
class Champion:
    """The best full result on one device at one choice of sizes; `sizes` is empty for those of the source."""

    device: str
    sizes: str
    measured: Measured
    measurement: Measurement


def rows(problems: QuerySet[Problem]) -> list[ProblemRow]:
    """Rows with facts and best result at the sizes in the source, in three queries, and what rooms above say of each problem.

    A run that still goes on has no result yet: what it found so far was judged in quick.
    """
    found = list(problems.defer("source"))
    counts = Q(imported__isnull=True, result__isnull=False, sizing__overrides={})
    runs = Run.objects.filter(problem__in=found).order_by().values_list("problem")
    tried = runs.annotate(Count("pk"), reached=Max("speedup", filter=counts))
    reached = {key: (count, best) for key, count, best in tried}
    sizings = {s.problem_id: s for s in Sizing.objects.filter(problem__in=found, overrides={}).defer("job")}
    columns = [column.cells(found) for column in extensions.problem_columns.values()]
    made = []
    for problem in found:
        sizing = sizings.get(problem.pk)
        runs_tried, best = reached.get(problem.pk, (0, None))
        facts = facts_of(sizing) if sizing else None
        made.append(
            ProblemRow(
                problem,
                facts,
                sizing.state if sizing else "",
                sizing.refusal if sizing else "",
                runs_tried,
                best,
                tuple(cells.get(problem.pk) for cells in columns),
            )
        )
    return made


def champions(problem: Problem) -> list[Champion]:
    """The fastest version by device and sizes, of those called faster in full; the source's sizes first."""
    found = Measurement.objects.filter(
        version__run__problem=problem,
        version__run__imported__isnull=True,  # its figures were measured elsewhere, by whoever wrote the transcript
        tier="full",
        outcome="faster",
        speedup__isnull=False,
    )
    best: dict[tuple[int, int], int] = {}
    for key, *place in found.order_by("-speedup", "id").values_list("pk", "device_id", "version__run__sizing_id"):
        best.setdefault((place[0], place[1]), key)
    rows = Measurement.objects.filter(pk__in=best.values()).defer("evaluation", "version__source", "version__plan")
    related = ("version__run__problem", "version__run__sizing", "version__run__device__host", "device__host")
    made = [_champion(row) for row in rows.select_related(*related).order_by("-speedup", "id")]
    return sorted(made, key=lambda one: bool(one.sizes))


def _champion(row: Measurement) -> Champion:
    sizes = figures.sizing(row.version.run.sizing.overrides)
    return Champion(str(row.device), sizes, measured(row.version, row), row)


def runs_of(problem: Problem) -> QuerySet[Run]:
    """Its latest runs."""
    return rows_needed().filter(problem=problem)[:30]
