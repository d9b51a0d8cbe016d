"""One beat a process: renews the claims of all runs its threads work on, and says which were lost."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import DatabaseError

from apps.runs import claims, connections
from apps.runs.claims import Claim
from apps.runs.events import ClaimLost

EVERY = 4.0  # seconds; a fifth of a claim's life

log = logging.getLogger(__name__)


class Leaving(Exception):
    """This process is being stopped: the run is given back as it is, and resumed by another."""


class Hold:
    """One run's claim as its thread asks after it."""

    def __init__(self, claim: Claim, leaving: threading.Event) -> None:
        self.claim = claim
        self._leaving = leaving
        self._lost = threading.Event()

    def lose(self) -> None:
        """The claim is gone."""
        self._lost.set()

    def check(self) -> None:
        """Raise `ClaimLost` or `Leaving` where this thread must not go on."""
        if self._lost.is_set():
            raise ClaimLost(f"Run {self.claim.run_id} was taken by another worker.")
        if self._leaving.is_set():
            raise Leaving

    def wait(self, seconds: float) -> None:
        """Sleep, but not beyond the moment this process is told to leave; then `check`."""
        self._leaving.wait(seconds)
        self.check()


class Beat:
    """The beat of this process; its thread starts with the first claim."""

    def __init__(self) -> None:
        self._holds: dict[UUID, Hold] = {}
        self._lock = threading.Lock()
        self._leaving = threading.Event()
        self._thread: threading.Thread | None = None

    def leave(self) -> None:
        """Make every thread give its run back: the process is being stopped."""
        self._leaving.set()

    @contextmanager
    def holding(self, claim: Claim) -> Iterator[Hold]:
        """Renew `claim` until the block ends."""
        hold = Hold(claim, self._leaving)
        with self._lock:
            self._holds[claim.id] = hold
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="claims", daemon=True)
                self._thread.start()
        try:
            yield hold
        finally:
            with self._lock:
                self._holds.pop(claim.id, None)

    def renew(self) -> None:
        """Renew all claims once, telling those whose claim is gone."""
        with self._lock:
            holds = dict(self._holds)
        if not holds:
            return
        good = claims.renew(set(holds))
        for claim_id, hold in holds.items():
            if claim_id not in good and claim_id in self._holds:
                hold.lose()

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(EVERY):
            try:
                self.renew()
            except DatabaseError as problem:
                log.warning("Claims could not be renewed, trying again in %.0f s: %s", EVERY, problem)
                connections.drop()


beat = Beat()
