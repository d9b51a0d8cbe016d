"""Events, drafts and a run's status as docs/api.md describes them: what websockets and REST send."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from apps.kernels.plain import Plain, to_plain
from apps.runs.models import LIVE_RUN_STATES, Event, Run, RunState


def instant(at: datetime | None) -> str | None:
    """A time as ISO 8601 in UTC with milliseconds, ending in Z."""
    return None if at is None else at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def event(row: Event) -> dict[str, Plain]:
    """One event as clients get it."""
    return {
        "seq": row.seq,
        "at": instant(row.at),
        "kind": row.kind,
        "agent": row.agent,
        "step": row.step,
        "iteration": row.iteration,
        "level": row.level,
        "text": row.text,
        "data": row.data,
    }


@dataclass(frozen=True)
class Status:
    """A run's row as its page needs it while it changes. `best` and `result` are version numbers."""

    id: int
    state: str
    lost: bool
    live: bool
    doing: str
    reason: str
    iteration: int
    iterations: int
    attempt: int
    last_seq: int
    best: int | None
    result: int | None
    speedup: float | None
    speedup_low: float | None
    speedup_high: float | None
    compiled_speedup: float | None
    outcome: str
    tokens_in: int
    tokens_out: int
    cost_usd: float
    cost_unknown: bool
    cost_estimated: bool
    seconds_limit: float | None
    money_limit_usd: float | None
    tokens_limit: int | None
    created_at: str | None
    started_at: str | None
    finished_at: str | None


_COLUMNS = {
    name: {"best": "best__number", "result": "result__number"}.get(name, name)
    for name in Status.__dataclass_fields__
    if name not in {"lost", "live"}
}


def statuses(runs: Any, now: datetime) -> list[Status]:
    """The status of each run of a queryset, in one query."""
    rows = runs.order_by("pk").values_list(*_COLUMNS.values(), "claim_expires_at")
    return [_status(dict(zip(_COLUMNS, row[:-1], strict=True)), row[-1], now) for row in rows]


def status_of(run: Run, now: datetime) -> Status:
    """The status of one run, read afresh."""
    return statuses(Run.objects.filter(pk=run.pk), now)[0]


def _status(values: dict[str, Any], expires: datetime | None, now: datetime) -> Status:
    working = values["state"] in (RunState.RUNNING, RunState.STOPPING)
    for name, value in values.items():
        if isinstance(value, datetime):
            values[name] = instant(value)
        elif isinstance(value, Decimal):
            values[name] = float(value)
    return Status(
        lost=working and expires is not None and expires < now, live=values["state"] in LIVE_RUN_STATES, **values
    )


# --- messages ---------------------------------------------------------------------------------------------------


def _message(kind: str, **fields: Plain) -> str:
    return json.dumps({"type": kind, **fields}, separators=(",", ":"), allow_nan=False)


def events_message(rows: Sequence[Event]) -> str:
    """Events in order."""
    return _message("events", events=[event(row) for row in rows])


def status_message(status: Status) -> str:
    """A run's row as it is now."""
    return _message("status", run=to_plain(status))


def draft_message(step: str, agent: str, iteration: int, offset: int, text: str) -> str:
    """Streaming text from `offset` (UTF-16 units) on."""
    return _message("draft", step=step, agent=agent, iteration=iteration, offset=offset, text=text)


def draft_end_message(step: str) -> str:
    """A draft that is no more."""
    return _message("draft_end", step=step)


def ready_message(seq: int) -> str:
    """The client has caught up."""
    return _message("ready", seq=seq)


def reset_message() -> str:
    """What the client has is not of this database."""
    return _message("reset")


def done_message(command: str) -> str:
    """A command was carried out."""
    return _message("done", command=command)


def refused_message(command: str, why: str) -> str:
    """A command was not carried out."""
    return _message("refused", command=command, message=why)


def changed_message(runs: Sequence[Status], hosts: Sequence[str]) -> str:
    """What changed in the lists."""
    return _message("changed", runs=[to_plain(status) for status in runs], hosts=list(hosts))


def notices_message(unread: int, newest: int) -> str:
    """How many notices a person has not read, and the newest one's number."""
    return _message("notices", unread=unread, newest=newest)


def utf16_length(text: str) -> int:
    """The length of a text as JavaScript counts it."""
    return len(text) + sum(character > "\uffff" for character in text) if not text.isascii() else len(text)
