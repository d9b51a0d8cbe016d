"""The plan that travels with a version, as plain data: its schedule, the moves that led to it, the version it edits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from apps.agents.builtin.schedule import Schedule
from apps.agents.words import Advice, Attempt
from apps.kernels.plain import BadPlain, Plain, from_plain, to_plain

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """`moves` are names, oldest first; `base` is the number of the version whose schedule was edited last."""

    schedule: Schedule
    moves: tuple[str, ...] = ()
    base: int | None = None

    def to_plain(self) -> Plain:
        """As JSON data."""
        return to_plain(self)

    def after(self, move: str, schedule: Schedule, base: int | None) -> Plan:
        """The plan one move further."""
        return Plan(schedule, (*self.moves, move), base)


@dataclass(frozen=True)
class Step:
    """What an advice tells a machine: the move by name, and the plan that it leads to."""

    name: str
    plan: Plan


def plan_of(attempt: Attempt | None) -> Plan | None:
    """The plan of a version; None where another author wrote it."""
    return _read(Plan, attempt.writing.plan) if attempt is not None else None


def step_of(advice: Advice | None) -> Step | None:
    """The step that an advice tells a machine; None where a person or a model gave it."""
    return _read(Step, advice.move) if advice is not None else None


def _read(kind: type[T], data: Plain) -> T | None:
    try:
        return from_plain(kind, data) if data is not None else None
    except BadPlain:
        return None
