"""The event log of a run: appended, numbered by one, never altered.

`append` raises the run's `last_seq` first, which locks its row until the transaction ends; so the order of commits is the
order of numbers, and a reader that has seen event n has seen all before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.agents.words import Agent
from apps.kernels.plain import Plain
from apps.runs import bell, notices
from apps.runs.models import Event, Level, Run


class ClaimLost(Exception):
    """Another worker has the run now, or it is over: whoever meets this must stop and write nothing more."""


@dataclass(frozen=True)
class Entry:
    """An event before it has a number. `text` is one line for people; `data` by kind stands in docs/api.md."""

    kind: str
    text: str
    agent: Agent | None = None
    step: str = ""
    iteration: int | None = None
    level: Level = Level.INFO
    data: dict[str, Plain] = field(default_factory=dict)


def append(run_id: int, entries: Sequence[Entry], *, claim: UUID | None = None, at: datetime | None = None) -> int:
    """Append `entries` in the transaction that is open (or one of its own), ring on commit; the last number given.

    With `claim` the run must still be held by it, else `ClaimLost` is raised and nothing is written. `at` is for events of
    a record, which happened before.
    """
    with transaction.atomic(savepoint=False):
        held = Run.objects.filter(pk=run_id) if claim is None else Run.objects.filter(pk=run_id, claim=claim)
        if not held.update(last_seq=F("last_seq") + len(entries)):
            raise ClaimLost(f"Run {run_id} is no longer held by claim {claim}.")
        last = int(Run.objects.values_list("last_seq", flat=True).get(pk=run_id))
        now = at or timezone.now()
        first = last - len(entries) + 1
        Event.objects.bulk_create(
            Event(
                run_id=run_id,
                seq=first + place,
                at=now,
                kind=entry.kind,
                agent=entry.agent or "",
                step=entry.step,
                iteration=entry.iteration,
                level=entry.level,
                text=entry.text,
                data=entry.data,
            )
            for place, entry in enumerate(entries)
        )
        for entry in entries:
            if entry.kind == "run_ended" and at is None:
                notices.tell_ended(run_id, entry.text, entry.data)
        bell.ring_on_commit()
    return last
