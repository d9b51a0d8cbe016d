"""The log of a run: searched, by level, in pages, or as one text to download."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet
from django.http import QueryDict

from apps.agents.ports import Agent
from apps.runs.models import Event, Level, Run

PER_PAGE = 200
LEVELS = tuple(level.value for level in Level)
AGENTS = tuple(agent.value for agent in Agent)


@dataclass(frozen=True)
class LogQuery:
    """What of the log is asked for: words, the least level, one agent."""

    search: str = ""
    level: str = Level.INFO.value
    agent: str = ""
    page: int | None = None  # None: the last one

    @classmethod
    def read(cls, query: QueryDict) -> LogQuery:
        """The query of an address; unknown levels count as info."""
        level, page = query.get("level", Level.INFO.value), query.get("page", "")
        return cls(
            search=query.get("find", "").strip(),
            level=level if level in LEVELS else Level.INFO.value,
            agent=query.get("agent", ""),
            page=int(page) if page.isdecimal() else None,
        )

    def lines(self, run: Run) -> QuerySet[Event]:
        """The events that match, in order."""
        match = Q(level__in=LEVELS[LEVELS.index(self.level) :])
        if self.agent:
            match &= Q(agent=self.agent)
        for word in self.search.split():
            match &= Q(text__icontains=word) | Q(kind__icontains=word)
        return run.events.filter(match).order_by("seq")


def log_page(run: Run, query: LogQuery) -> Page[Event]:
    """One page of the log; without a page asked for the last, where the newest lines are."""
    pages = Paginator(query.lines(run), PER_PAGE)
    return pages.get_page(query.page or pages.num_pages)


def log_text(run: Run, query: LogQuery) -> Iterator[str]:
    """The log as lines of text, whole messages included."""
    for event in query.lines(run).iterator(chunk_size=500):
        at, agent = f"{event.at:%Y-%m-%dT%H:%M:%S.%f}Z", event.agent or "-"
        yield f"{at} {event.seq:6d} {event.level:7} {agent:9} {event.kind}: {event.text}\n"
        text = event.data.get("text")
        if event.kind == "step_ended" and isinstance(text, str) and text.strip() != event.text.strip():
            yield "".join(f"    {line}\n" for line in text.splitlines())
