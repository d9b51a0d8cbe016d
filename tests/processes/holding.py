"""Runs held back at a step of their journal: to them the database is away, to everybody else it is there.

A worker waits for a database that is away, so a run stays where it is held until its worker is killed. SQLite only: what a
trigger raises there when it reads no JSON is, to Django, what a database that is away raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from django.db import connection

from apps.runs.models import Run


class At(StrEnum):
    """Where in a step: before its work is begun, before its model's answer is accounted for, or before it is journalled."""

    WORK = "work"
    ACCOUNT = "account"
    JOURNAL = "journal"


# What is about to be written, the column of its run, and when it is refused.
_TRIGGERS = [
    ("INSERT ON runs_event", "run_id", "NEW.kind = 'step_began' AND at = 'work' AND position <= {journalled}"),
    ("UPDATE ON ledger_call", "run", "NEW.outcome = 'answered' AND at = 'account' AND position <= {journalled}"),
    # A step that begins without a word is held here, too: it asks nobody anything.
    ("INSERT ON runs_journalentry", "run_id", "at IN ('work', 'journal') AND position <= NEW.position"),
]
_HELD = """
CREATE TRIGGER test_held_{number} BEFORE {event}
WHEN EXISTS (SELECT 1 FROM test_held WHERE run = NEW.{column} AND {condition})
BEGIN SELECT json('held ' || NEW.{column}); END
"""
_SAID_OF_HELD = re.compile(r"Run (\d+): the database is away, trying again: malformed JSON")


class Held:
    """The runs that are held. A step is named by its position in the journal."""

    def add(self, run: Run, position: int, at: At) -> None:
        """Hold the run at that step."""
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO test_held VALUES (%s, %s, %s)", [run.pk, position, at.value])

    def release(self) -> None:
        """Nobody is held any more."""
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM test_held")

    def in_log(self, log: str) -> set[int]:
        """The runs that a worker says it waits for."""
        return {int(number) for number in _SAID_OF_HELD.findall(log)}


@contextmanager
def holding() -> Iterator[Held]:
    """What holds runs, in this test's database until the block ends."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE test_held (run INTEGER, position INTEGER, at TEXT)")
        for number, (event, column, condition) in enumerate(_TRIGGERS):
            journalled = f"(SELECT COUNT(*) FROM runs_journalentry WHERE run_id = NEW.{column})"
            condition = condition.format(journalled=journalled)
            cursor.execute(_HELD.format(number=number, event=event, column=column, condition=condition))
    try:
        yield Held()
    finally:
        with connection.cursor() as cursor:
            for number in range(len(_TRIGGERS)):
                cursor.execute(f"DROP TRIGGER test_held_{number}")
            cursor.execute("DROP TABLE test_held")
