"""A worker that no longer works says so and leaves, to be started anew: one that has lost its broker for good, or that
takes nothing though work waits (workers that stop consuming after a broker's restart are a recurring trouble).
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import redis

from apps.kernels.plain import Plain
from apps.station.broker import Broker
from apps.station.health import Health

LOOK_EVERY = 2.0
LOST_SECONDS = 60.0
STARVED_SECONDS = 15.0
LEAVE_CODE = 75  # EX_TEMPFAIL: start me again

log = logging.getLogger(__name__)


@dataclass
class Judgement:
    """What the looks so far have shown, kept apart from clocks and sockets so that it can be tried out.

    `unreachable_since` and `starving_since` are seconds on the caller's clock, None while all is well. `idle` is how long
    messages were seen to wait: 0 at the first look that sees one, which may just be on its way.
    """

    unreachable_since: float | None = None
    starving_since: float | None = None
    taken: int = 0
    idle: float = 0.0

    def look(self, now: float, *, reachable: bool, waiting: int, taken: int, free: bool) -> str | None:
        """Take in one look; why the worker should leave, or None.

        `waiting` are messages nobody took, `taken` counts those this worker ever took, `free` whether it could take one.
        """
        self.idle = 0.0
        if not reachable:
            self.starving_since = None
            self.unreachable_since = now if self.unreachable_since is None else self.unreachable_since
            gone = now - self.unreachable_since
            return f"the broker has not answered for {gone:.0f} s" if gone >= LOST_SECONDS else None
        self.unreachable_since = None
        if waiting == 0 or taken != self.taken or not free:
            self.starving_since, self.taken = None, taken
            return None
        self.starving_since = now if self.starving_since is None else self.starving_since
        self.idle = now - self.starving_since
        if self.idle < STARVED_SECONDS:
            return None
        return f"{waiting} messages wait and none was taken for {self.idle:.0f} s"


def leave(why: str) -> None:
    """End this process at once. Whoever supervises it starts it anew."""
    log.error("Leaving to be started anew: %s", why)
    logging.shutdown()
    os._exit(LEAVE_CODE)


@dataclass
class Watchdog:
    """Looks at the broker every few seconds. `busy` says how many tasks run now; with `patient` a worker that is busy is
    not ended for a broker that is away, because what it does needs none.
    """

    process: str
    broker: Broker
    queues: Sequence[str]
    slots: int
    busy: Callable[[], int]
    patient: bool = True
    leave: Callable[[str], None] = leave
    facts: Callable[[], dict[str, Plain]] = dict
    taken: int = 0
    _judgement: Judgement = field(default_factory=Judgement)
    _reachable: bool = False
    _waiting: int = 0

    def start(self) -> None:
        """Look from now on, in a thread of its own."""
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def count(self) -> None:
        """A message was taken."""
        self.taken += 1

    def look(self, now: float) -> str | None:
        """One look; why to leave, or None."""
        try:
            self._waiting = sum(self.broker.waiting(queue) for queue in self.queues)
            self._reachable = True
        except (redis.RedisError, OSError):
            self._reachable = False
        busy = self.busy()
        why = self._judgement.look(
            now, reachable=self._reachable, waiting=self._waiting, taken=self.taken, free=busy < self.slots
        )
        return None if why and not self._reachable and self.patient and busy else why

    def health(self) -> Health:
        """What the process's health page says."""
        facts: dict[str, Plain] = {"busy": self.busy(), "waiting": self._waiting, "taken": self.taken} | self.facts()
        facts["pid"] = os.getpid()
        if not self._reachable:
            return Health(self.process, ok=False, detail="the broker does not answer", facts=facts)
        if self._judgement.idle > 0:
            return Health(self.process, ok=False, detail="work waits and is not taken", facts=facts)
        return Health(self.process, ok=True, facts=facts)

    def _run(self) -> None:
        while True:
            why = self.look(time.monotonic())
            if why is not None:
                self.leave(why)
            time.sleep(LOOK_EVERY)
