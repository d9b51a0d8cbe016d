"""What the agents said, lane by lane: finished steps folded to their summary, open ones as they stream."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from apps.agents.words import Agent
from apps.kernels.plain import Plain, to_plain
from apps.runs import exchanges
from apps.runs.models import Draft, Event, Run
from apps.runs.presentation import figures

_THOUGHT = re.compile(r"<think(?:ing)?>(.*?)(?:</think(?:ing)?>|\Z)", re.DOTALL)
KEPT = 80  # finished steps a page starts with; all of them are in the log
_LANES = (
    (Agent.CODER, "Coder", "writes and repairs"),
    (Agent.VERIFIER, "Verifier", "builds, checks and reads failures"),
    (Agent.PROFILER, "Profiler", "times and reads metrics"),
    (Agent.CONDUCTOR, "Conductor", "reasons and advises"),
)


@dataclass(frozen=True)
class Entry:
    """One finished step: its summary and what it took. Where there is more to read, `lines` says how much (else 0)."""

    seq: int
    agent: str
    iteration: int | None
    at: datetime
    summary: str
    lines: int
    took: str
    by_model: bool


@dataclass(frozen=True)
class OpenDraft:
    """Text of a step that is still streaming; `place` tells an iteration's candidates apart where there are several."""

    step: str
    agent: str
    place: str
    text: str


@dataclass(frozen=True)
class Lane:
    """One agent's lane: what it is doing now, what it said, what it is saying."""

    agent: str
    name: str
    does: str
    doing: str
    entries: tuple[Entry, ...] = ()
    drafts: tuple[OpenDraft, ...] = field(default=())


def lanes(run: Run) -> list[Lane]:
    """The four lanes of a run, each with its newest steps last."""
    entries = [entry_of(event) for event in _newest(run, ("step_ended",), KEPT)]
    drafts = [_open_draft(draft, run) for draft in run.drafts.order_by("step")] if run.is_live else []
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


def _newest(run: Run, kinds: Sequence[str], count: int) -> list[Event]:
    """The newest events of those kinds, in order. Their numbers come first: a database that has to sort a long log for them
    then sorts numbers, not texts."""
    numbers = list(run.events.filter(kind__in=kinds).order_by("-seq").values_list("seq", flat=True)[:count])
    return list(run.events.filter(seq__in=numbers).order_by("seq"))


def _open_draft(draft: Draft, run: Run) -> OpenDraft:
    place = f"it. {draft.iteration}"
    if draft.agent == Agent.CODER and run.candidates > 1:
        place += f" · candidate {int(draft.step.split('.')[1]) + 1}"
    return OpenDraft(draft.step, draft.agent, place, draft.text)


def _doing(run: Run) -> dict[str, str]:
    """What each agent is doing: the title of its newest step that has begun and not ended, and how many go on at once."""
    over: set[str] = set()
    doing: dict[str, dict[str, str]] = {}
    for event in reversed(_newest(run, ("step_began", "step_ended"), 24)):
        if event.kind == "step_ended":
            over.add(event.step)
        elif event.step not in over:
            doing.setdefault(event.agent, {}).setdefault(event.step, str(event.data.get("title", event.text)))
    return {agent: _at_once(list(titles.values())) for agent, titles in doing.items()}


def _at_once(titles: list[str]) -> str:
    return titles[0] if len(titles) == 1 else f"{titles[0]} · {len(titles)} at once"


def entry_of(event: Event) -> Entry:
    """A finished step from its event."""
    text = str(event.data.get("text", ""))
    return Entry(
        seq=event.seq,
        agent=event.agent,
        iteration=event.iteration,
        at=event.at,
        summary=event.text,
        lines=text.count("\n") + 1 if text.strip() and text.strip() != event.text.strip() else 0,
        took=usage_text(event.data.get("usage") or {}),
        by_model=bool((event.data.get("usage") or {}).get("model")),
    )


def usage_text(usage: dict[str, Plain]) -> str:
    """`1.2 s · 3.4 K tok · $0.02`, leaving out what a step does not have; what is estimated or unknown says so."""
    parts = [figures.duration(usage.get("seconds"))]
    tokens = (usage.get("tokens_in") or 0) + (usage.get("tokens_out") or 0)
    if tokens or usage.get("model"):
        cost = usage.get("cost_usd")
        guess = "≈ " if usage.get("estimated") else ""
        price = "cost unknown" if cost is None else guess + figures.money(cost)
        parts += [f"{guess}{figures.count(tokens)} tok", price + (" (estimated)" if guess else "")]
    return " · ".join(parts)


@dataclass(frozen=True)
class Exchanged:
    """One call of a model within a step: its heading, the prompt's messages, what it thought and what it answered."""

    heading: str
    prompt: tuple[exchanges.Line, ...]
    characters: int
    thought: str
    answer: str
    failure: str


@dataclass(frozen=True)
class Said:
    """All that there is to read of one finished step."""

    thought: str
    answer: str
    exchanged: tuple[Exchanged, ...]


def said(run: Run, event: Event) -> Said:
    """The whole text of a step, with the prompts of its calls where a model was asked."""
    thought, answer = thinking(str(event.data.get("text", "")))
    return Said(thought, answer, tuple(_exchanged(one) for one in exchanges.of_step(run, event.step)))


def thinking(text: str) -> tuple[str, str]:
    """A text as what was thought and what was said: models mark their reasoning so, and so does the gateway."""
    thought = [found[1].strip() for found in _THOUGHT.finditer(text)]
    return "\n\n".join(one for one in thought if one), _THOUGHT.sub("", text).strip()


def _exchanged(told: exchanges.Told) -> Exchanged:
    free = "" if told.temperature is None else f" · temperature {told.temperature:g}"
    cut = "" if told.complete or told.failure else " · cut short"
    heading = f"{told.model}{free} · {usage_text(to_plain(told.usage))}{cut}"
    characters = sum(len(line.text) for line in told.prompt)
    return Exchanged(heading, told.prompt, characters, told.reasoning, told.answer, told.failure)
