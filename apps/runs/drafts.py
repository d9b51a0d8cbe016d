"""Streaming text on its way to the run's page: written every 50 ms for all runs of a process in one transaction.

A draft is no event. `close` ends it before the journal's transaction, which deletes the row and appends the whole text as
one event; nothing written here can come after that.
"""

from __future__ import annotations

import logging
import threading
from uuid import UUID

from django.db import DatabaseError, transaction

from apps.agents.facts import StepBegan
from apps.runs import bell, connections
from apps.runs.claims import Claim
from apps.runs.models import Draft, Run

EVERY = 0.05  # seconds
LONGEST = 400_000  # characters; a runaway stream keeps its beginning

log = logging.getLogger(__name__)


class OpenDraft:
    """One step's text so far. `say` is called by the thread that works, the rest by the writer."""

    def __init__(self, claim: Claim, began: StepBegan) -> None:
        self.claim = claim
        self.began = began
        self.lock = threading.RLock()
        self._pieces: list[str] = []
        self._length = 0
        self._written = 0
        self._closed = False

    def say(self, text: str) -> None:
        """Add text to the draft."""
        with self.lock:
            if text and self._length < LONGEST:
                self._pieces.append(text)
                self._length += len(text)

    def close(self) -> str:
        """The whole text; nothing of this draft is written from now on."""
        with self.lock:
            self._closed = True
            return "".join(self._pieces)

    def pending(self) -> str | None:
        """The whole text if there is more of it than was written, else None. Call with `lock` held."""
        if self._closed or self._length == self._written:
            return None
        return "".join(self._pieces)

    def written(self, text: str) -> None:
        """That text is in the database. Call with `lock` held."""
        self._written = len(text)


class DraftWriter:
    """The one writer of drafts in this process; its thread starts with the first draft."""

    def __init__(self) -> None:
        self._open: set[OpenDraft] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def open(self, claim: Claim, began: StepBegan) -> OpenDraft:
        """A draft for a step that begins."""
        draft = OpenDraft(claim, began)
        with self._lock:
            self._open.add(draft)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="drafts", daemon=True)
                self._thread.start()
        return draft

    def close(self, draft: OpenDraft) -> str:
        """End a draft; its whole text."""
        with self._lock:
            self._open.discard(draft)
        return draft.close()

    def flush(self) -> None:
        """Write what was said since the last time."""
        with self._lock:
            drafts = list(self._open)
        locked = [draft for draft in drafts if draft.lock.acquire(blocking=False)]
        try:
            news = [(draft, text) for draft in locked if (text := draft.pending()) is not None]
            if news:
                self._write(news)
        finally:
            for draft in locked:
                draft.lock.release()

    def _write(self, news: list[tuple[OpenDraft, str]]) -> None:
        wanted: set[UUID] = {draft.claim.id for draft, _ in news}
        with transaction.atomic():
            good = set(Run.objects.filter(claim__in=wanted).values_list("claim", flat=True))
            rows = [
                Draft(
                    run_id=draft.claim.run_id,
                    step=draft.began.step,
                    agent=draft.began.agent,
                    iteration=draft.began.iteration,
                    text=text,
                )
                for draft, text in news
                if draft.claim.id in good
            ]
            Draft.objects.bulk_create(
                rows,
                update_conflicts=True,
                unique_fields=["run", "step"],
                update_fields=["agent", "iteration", "text", "updated_at"],
            )
            bell.ring_on_commit()
        for draft, text in news:
            draft.written(text)

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(EVERY):
            try:
                self.flush()
            except DatabaseError as problem:
                log.warning("Drafts could not be written, trying again: %s", problem)
                connections.drop()
                pause.wait(1.0)


writer = DraftWriter()
