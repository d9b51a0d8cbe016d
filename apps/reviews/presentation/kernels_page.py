"""The catalogue of accepted kernels, and one of them with its evidence and history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.urls import reverse

from apps.reviews.models import AcceptedKernel, KernelState
from apps.reviews.presentation.chips import doubt_chip, kernel_chip
from apps.runs.models import Problem
from apps.runs.presentation import figures
from apps.runs.presentation.extensions import Cell
from apps.runs.presentation.states import Chip

PER_PAGE = 50
STATES = (
    ("current", "In use"),
    ("doubted", "In use, to be looked at"),
    ("superseded", "Superseded"),
    ("revoked", "Revoked"),
)


@dataclass(frozen=True)
class KernelsQuery:
    """Filters of the catalogue; what is in use is shown where no state is chosen."""

    state: str = "current"
    problem: str = ""
    device: str = ""
    language: str = ""
    search: str = ""
    page: str = "1"

    @classmethod
    def read(cls, query: QueryDict) -> KernelsQuery:
        """The query of an address."""
        state = query.get("state", "current")
        return cls(
            state if state in dict(STATES) or not state else "current",
            query.get("problem", ""),
            query.get("device", ""),
            query.get("language", ""),
            query.get("q", "").strip(),
            query.get("page", "1"),
        )

    @property
    def filtered(self) -> bool:
        """Whether anything narrows the list."""
        return bool(self.problem or self.device or self.language or self.search or self.state != "current")

    def apply(self) -> QuerySet[AcceptedKernel]:
        """The kernels that match, by problem, device and language, the latest first."""
        match = Q()
        if self.state == "doubted":
            match &= Q(state=KernelState.CURRENT) & ~Q(doubt="")
        elif self.state:
            match &= Q(state=self.state)
        if self.problem:
            match &= Q(problem__slug=self.problem)
        host, _, name = self.device.partition("/")
        if name:
            match &= Q(device__host__name=host, device__name=name)
        if self.language:
            match &= Q(language=self.language)
        for word in self.search.split():
            match &= Q(problem__title__icontains=word) | Q(digest__startswith=word) | Q(device__model__icontains=word)
        found = AcceptedKernel.objects.filter(match)
        return found.order_by("problem__title", "device__host__name", "device__name", "language", "-id")


@dataclass(frozen=True)
class KernelRow:
    """One kernel of the catalogue."""

    kernel: AcceptedKernel
    chip: Chip
    doubt: Chip | None
    speedup: str
    interval: str
    sizes: str


def rows(kernels: QuerySet[AcceptedKernel]) -> list[KernelRow]:
    """Rows with their evidence, in one query."""
    related = ("problem", "sizing", "device__host", "version__run", "measurement", "by", "superseded_by")
    return [row_of(kernel) for kernel in kernels.select_related(*related).defer("measurement__evaluation")]


def row_of(kernel: AcceptedKernel) -> KernelRow:
    """One kernel with its figures."""
    row = kernel.measurement
    return KernelRow(
        kernel=kernel,
        chip=kernel_chip(kernel),
        doubt=doubt_chip(kernel),
        speedup=figures.ratio(row.speedup),
        interval=figures.interval(row.speedup_low, row.speedup_high),
        sizes=figures.sizing(kernel.sizing.overrides) or "as in the source",
    )


def cells(problems: Sequence[Problem]) -> Mapping[int, Cell]:
    """What the list of problems says of accepted kernels: the fastest in use for each problem, and how many there are."""
    found = AcceptedKernel.objects.filter(problem__in=problems, state=KernelState.CURRENT)
    columns = ("problem_id", "problem__slug", "pk", "measurement__speedup")
    said: dict[int, list[tuple[float, int, str]]] = {}
    for problem, slug, pk, speedup in found.values_list(*columns):
        said.setdefault(problem, []).append((speedup or 0.0, pk, slug))
    made = {}
    for problem, kernels in said.items():
        speedup, pk, slug = max(kernels)
        one = reverse("kernel", args=[pk])
        address = one if len(kernels) == 1 else f"{reverse('kernels')}?problem={slug}"
        text = figures.ratio(speedup) + (f" of {len(kernels)}" if len(kernels) > 1 else "")
        made[problem] = Cell(text, address, "the fastest accepted kernel in use")
    return made
