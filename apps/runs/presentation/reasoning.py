"""What the agents said, lane by lane: finished steps folded to their summary, open ones as they stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from apps.agents.ports import Agent
from apps.kernels.plain import Plain
from apps.runs.models import Draft, Event, Run
from apps.runs.presentation import figures

KEPT = 80  # finished steps a page starts with; all of them are in the log
_LANES = (
    (Agent.CODER, "Coder", "writes and repairs"),
    (Agent.VERIFIER, "Verifier", "builds and checks"),
    (Agent.PROFILER, "Profiler", "times and reads metrics"),
    (Agent.CONDUCTOR, "Conductor", "reasons and advises"),
)


@dataclass(frozen=True)
class Entry:
    """One finished step: its summary, the whole text where there is more, and what it took."""

    seq: int
    agent: str
    iteration: int | None
    at: datetime
    summary: str
    text: str
    took: str

    @property
    def lines(self) -> int:
        """Lines of the whole text."""
        return self.text.count("\n") + 1


@dataclass(frozen=True)
class Lane:
    """One agent's lane: what it is doing now, what it said, what it is saying."""

    agent: str
    name: str
    does: str
    doing: str
    entries: tuple[Entry, ...] = ()
    drafts: tuple[Draft, ...] = field(default=())


def lanes(run: Run) -> list[Lane]:
    """The four lanes of a run, each with its newest steps last."""
    ended = run.events.filter(kind="step_ended").order_by("-seq")[:KEPT]
    entries = [entry_of(event) for event in reversed(ended)]
    drafts = list(run.drafts.order_by("id")) if run.is_live else []
    doing = _doing(run) if run.is_live else {}
    return [
        Lane(
            agent.value,
            name,
            does,
            doing.get(agent.value, ""),
            tuple(entry for entry in entries if entry.agent == agent),
            tuple(draft for draft in drafts if draft.agent == agent),
        )
        for agent, name, does in _LANES
    ]


def _doing(run: Run) -> dict[str, str]:
    """The title of each agent's step that has begun and not ended."""
    newest: Iterable[Event] = run.events.filter(kind__in=("step_began", "step_ended")).order_by("-seq")[:24]
    over: set[str] = set()
    doing: dict[str, str] = {}
    for event in newest:
        if event.kind == "step_ended":
            over.add(event.step)
        elif event.step not in over:
            doing.setdefault(event.agent, str(event.data.get("title", event.text)))
    return doing


def entry_of(event: Event) -> Entry:
    """A finished step from its event."""
    text = str(event.data.get("text", ""))
    return Entry(
        seq=event.seq,
        agent=event.agent,
        iteration=event.iteration,
        at=event.at,
        summary=event.text,
        text=text if text.strip() != event.text.strip() else "",
        took=usage_text(event.data.get("usage") or {}),
    )


def usage_text(usage: dict[str, Plain]) -> str:
    """`1.2 s · 3.4 K tok · $0.02`, leaving out what a step does not have."""
    parts = [figures.duration(usage.get("seconds"))]
    tokens = (usage.get("tokens_in") or 0) + (usage.get("tokens_out") or 0)
    if tokens:
        cost = usage.get("cost_usd")
        parts += [f"{figures.count(tokens)} tok", figures.money(cost, unknown=cost is None)]
    return " · ".join(parts)
