"""What models were asked and what they answered, kept beside a run's steps for people to read; never part of its record."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from django.db import DatabaseError

from apps.agents.facts import StepKey
from apps.agents.gateway.purse import Call, Largest, Purse
from apps.agents.words import Usage
from apps.kernels.plain import BadPlain, from_plain, to_plain
from apps.runs.journal import storable
from apps.runs.models import Exchange, Run

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Line:
    """One message: by whom (`system`, `user`, `assistant`), and its text."""

    role: str
    text: str


@dataclass(frozen=True)
class Told:
    """One call: the whole prompt, the model's reasoning and answer, what it took. `failure` is empty where it went well."""

    model: str
    temperature: float | None
    prompt: tuple[Line, ...]
    reasoning: str
    answer: str
    complete: bool
    failure: str
    usage: Usage


class KeptCalls:
    """A `Purse` that keeps what the calls said, and leaves the money to the one it stands before.

    `doing` gives the step in hand (`apps.runs.journal.RunJournal.doing`).
    """

    def __init__(self, purse: Purse, run_id: int, doing: Callable[[], StepKey | None]) -> None:
        self._purse = purse
        self._run_id = run_id
        self._doing = doing

    def reserve(self, model: str, purpose: str, largest: Largest) -> str:
        """See `apps.agents.gateway.purse.Purse`."""
        return self._purse.reserve(model, purpose, largest)

    def settle(self, token: str, call: Call) -> None:
        """See `apps.agents.gateway.purse.Purse`. A call whose text can't be kept is paid for all the same."""
        self._purse.settle(token, call)
        step = self._doing()
        if step is None:
            return
        try:
            keep(self._run_id, str(step), call)
        except DatabaseError as problem:
            log.warning("Run %s: what was asked in step %s could not be kept: %s", self._run_id, step, problem)


def keep(run_id: int, step: str, call: Call) -> None:
    """Keep one call of a step."""
    told = Told(
        model=call.model,
        temperature=call.question.temperature,
        prompt=tuple(Line(message.role, message.text) for message in call.question.messages),
        reasoning=call.reasoning,
        answer=call.answer,
        complete=call.complete,
        failure=call.failure or "",
        usage=call.usage,
    )
    text = json.dumps(storable(to_plain(told)), ensure_ascii=False)
    Exchange.objects.create(run_id=run_id, step=step[:60], content=zlib.compress(text.encode()))


def of_step(run: Run, step: str) -> list[Told]:
    """The calls of a step in order; those that another version of PRAGMA kept in another shape are left out."""
    told = []
    for row in Exchange.objects.filter(run=run, step=step):
        try:
            told.append(from_plain(Told, json.loads(zlib.decompress(row.content))))
        except (BadPlain, ValueError, zlib.error):
            continue
    return told
