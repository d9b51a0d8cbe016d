"""The list of runs as its address says it: filters, search, sort, columns and page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import F, Q, QuerySet
from django.http import QueryDict
from django.utils import timezone

from apps.runs.models import LIVE_RUN_STATES, Run, RunState

PER_PAGE = 50
# Name in the address, heading, what it sorts by (empty: it doesn't).
COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("state", "State", "state"),
    ("problem", "Problem", "problem__title"),
    ("language", "Language", "language"),
    ("host", "Host", "device__host__name"),
    ("coder", "Coder", "coder"),
    ("speedup", "Best speed-up", "speedup"),
    ("spark", "Progress", ""),
    ("spend", "Spend", "cost_usd"),
    ("started", "Started", "created_at"),
    ("who", "Who", "owner__username"),
    ("took", "Took", ""),
    ("policy", "Policy", "policy"),
    ("compiled", "torch.compile", "compiled_speedup"),
    ("profile", "Profile", "profile"),
    ("tags", "Tags", ""),
    ("notes", "Notes", ""),
    ("gain", "Cost per gain", ""),
)
_USUAL = tuple(name for name, *_ in COLUMNS[:10])
_SORTS = {name: field for name, _, field in COLUMNS if field} | {"run": "id"}
_SILENT: Callable[[], Q] = lambda: Q(  # noqa: E731 - read at each request
    state__in=(RunState.RUNNING, RunState.STOPPING), claim_expires_at__lt=timezone.now()
)


@dataclass(frozen=True)
class RunsQuery:
    """What is asked for. Unknown names in an address are ignored rather than refused: addresses outlive pages."""

    search: str = ""
    state: str = ""
    problem: str = ""
    language: str = ""
    host: str = ""
    coder: str = ""
    who: str = ""
    tag: str = ""
    sort: str = "-run"
    columns: tuple[str, ...] = _USUAL
    page: int = 1

    @classmethod
    def read(cls, query: QueryDict) -> RunsQuery:
        """The query of an address."""
        chosen = [name for part in query.getlist("columns") for name in part.split(",")]
        known = tuple(name for name, *_ in COLUMNS if name in chosen)
        sort = query.get("sort", "-run")
        return cls(
            search=query.get("q", "").strip(),
            state=query.get("state", ""),
            problem=query.get("problem", ""),
            language=query.get("language", ""),
            host=query.get("host", ""),
            coder=query.get("coder", ""),
            who=query.get("who", ""),
            tag=query.get("tag", "").strip().lower(),
            sort=sort if sort.lstrip("-") in _SORTS else "-run",
            columns=known or _USUAL,
            page=int(query.get("page", "1")) if query.get("page", "1").isdecimal() else 1,
        )

    @property
    def filtered(self) -> bool:
        """Whether anything narrows the list."""
        return any((self.search, self.state, self.problem, self.language, self.host, self.coder, self.who, self.tag))

    def apply(self, runs: QuerySet[Run]) -> QuerySet[Run]:
        """The runs that match, in order; what has no value comes last either way."""
        runs = runs.filter(self._matches())
        down, field = self.sort.startswith("-"), _SORTS[self.sort.lstrip("-")]
        by = F(field).desc(nulls_last=True) if down else F(field).asc(nulls_last=True)
        return runs.order_by(by, "-id")

    def _matches(self) -> Q:
        match = self._state()
        for field, value in (
            ("problem__slug", self.problem),
            ("language", self.language),
            ("device__host__name", self.host),
            ("coder", self.coder),
            ("owner__username", self.who),
        ):
            if value:
                match &= Q(**{field: value})
        if self.tag:
            match &= Q(tags__contains=f" {self.tag} ")
        for word in self.search.split():
            either = Q(problem__title__icontains=word) | Q(problem__slug__icontains=word) | Q(coder__icontains=word)
            either |= (
                Q(device__host__name__icontains=word) | Q(owner__username__icontains=word) | Q(notes__icontains=word)
            )
            either |= Q(tags__contains=word.lower())
            match &= either | Q(pk=int(word)) if word.isdecimal() and len(word) < 10 else either
        return match

    def _state(self) -> Q:
        match self.state:
            case "live":
                return Q(state__in=LIVE_RUN_STATES)
            case "ended":
                return ~Q(state__in=LIVE_RUN_STATES)
            case "lost":
                return _SILENT()
            case state if state in RunState.values:
                return Q(state=state)
        return Q()


STATE_CHOICES: tuple[tuple[str, str], ...] = (
    ("live", "going on"),
    ("ended", "ended"),
    *((state.value, state.label.lower()) for state in RunState),
    ("lost", "lost"),
)
