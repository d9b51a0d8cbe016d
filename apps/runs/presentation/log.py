"""The log of a run: searched, by level, in pages, or as one text to download.

Pages are found by the numbers of their lines, not by counting: a page of a log of any length costs what the page costs, and
an address leads to the same lines however long the log grows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import Q, QuerySet
from django.http import QueryDict

from apps.agents.words import Agent
from apps.runs.models import Event, Level, Run

PER_PAGE = 100
LEVELS = tuple(level.value for level in Level)
AGENTS = tuple(agent.value for agent in Agent)


@dataclass(frozen=True)
class LogQuery:
    """What of the log is asked for: words, the least level, one agent."""

    search: str = ""
    level: str = Level.INFO.value
    agent: str = ""
    first: int | None = None  # lines from this number on
    last: int | None = None  # lines up to this number; without either the newest ones

    @classmethod
    def read(cls, query: QueryDict) -> LogQuery:
        """The query of an address; unknown levels count as info."""
        level = query.get("level", Level.INFO.value)
        return cls(
            search=query.get("find", "").strip(),
            level=level if level in LEVELS else Level.INFO.value,
            agent=query.get("agent", ""),
            first=_number(query.get("from", "")),
            last=_number(query.get("to", "")),
        )

    def lines(self, run: Run) -> QuerySet[Event]:
        """The events that match, in order."""
        match = Q(level__in=LEVELS[LEVELS.index(self.level) :])
        if self.agent:
            match &= Q(agent=self.agent)
        for word in self.search.split():
            match &= Q(text__icontains=word) | Q(kind__icontains=word)
        return run.events.filter(match).order_by("seq")


@dataclass(frozen=True)
class LogPage:
    """Lines in order. `earlier` is the last line's number of the page before, `later` the first one's of the page after;
    None where there is none."""

    lines: tuple[Event, ...]
    earlier: int | None
    later: int | None


def log_page(run: Run, query: LogQuery) -> LogPage:
    """One page of the log; without a place asked for the last, where the newest lines are."""
    lines = query.lines(run)
    if query.first is not None:
        found = list(lines.filter(seq__gte=query.first)[: PER_PAGE + 1])
        found, after = found[:PER_PAGE], found[PER_PAGE:]
        before = lines.filter(seq__lt=query.first).reverse()[:1]
        return LogPage(tuple(found), _seq(before), _seq(after))
    upto = lines if query.last is None else lines.filter(seq__lte=query.last)
    newest = list(upto.reverse()[: PER_PAGE + 1])
    found, before_it = newest[:PER_PAGE], newest[PER_PAGE:]
    later = [] if query.last is None else lines.filter(seq__gt=query.last)[:1]
    return LogPage(tuple(reversed(found)), _seq(before_it), _seq(later))


def _seq(lines: Iterable[Event]) -> int | None:
    return next((line.seq for line in lines), None)


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 10 else None


def log_text(run: Run, query: LogQuery) -> Iterator[str]:
    """The log as lines of text, whole messages included."""
    for event in query.lines(run).iterator(chunk_size=500):
        at, agent = f"{event.at:%Y-%m-%dT%H:%M:%S.%f}Z", event.agent or "-"
        yield f"{at} {event.seq:6d} {event.level:7} {agent:9} {event.kind}: {event.text}\n"
        text = event.data.get("text")
        if event.kind == "step_ended" and isinstance(text, str) and text.strip() != event.text.strip():
            yield "".join(f"    {line}\n" for line in text.splitlines())
