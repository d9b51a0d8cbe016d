"""The one reader of a web process: wakes on the bell or a short timer, reads once a run, feeds each socket's queue.

A socket first joins the queue of its run, at a known event number, then replays what lies before it. So there is neither
gap nor double, however long the replay takes.
"""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

import redis.asyncio
from django.conf import settings
from django.db import DatabaseError

from apps.hosts import bell as jobs_bell
from apps.runs import bell, connections, wire
from apps.runs.live import reading
from apps.runs.live.reading import Lists, Snapshot
from apps.runs.live.subscription import Subscription
from apps.runs.live.watched import Watched

T = TypeVar("T")

_BETWEEN_READS = 0.015  # seconds: rings that come closer are answered together
_TIMER_SQLITE = 0.05  # an idle look costs nothing there
_TIMER_WITH_BELL, _TIMER_WITHOUT = 1.0, 0.25
_LOOK_ANYWAY = 5.0  # a run is lost by time passing, which no commit tells
_LISTS_EVERY = 0.5

log = logging.getLogger(__name__)


class Tailer:
    """Reads for all sockets of one event loop."""

    def __init__(self) -> None:
        self._watched: dict[int, Watched] = {}
        self._lists: Lists | None = None
        self._list_subscriptions: set[Subscription] = set()
        self._lists_read = 0.0
        self._people: dict[int, set[Subscription]] = {}
        self._unread: Mapping[int, tuple[int, int]] = {}
        self._versions = reading.Versions()
        self._looked = 0.0
        self._stale = False  # a read failed, or came too early for a run that is watched only now
        self._lists_stale = True
        self._wake = asyncio.Event()
        self._bell_works = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._reader = ThreadPoolExecutor(1, "tailer")
        self._replays = ThreadPoolExecutor(2, "replay")

    # --- for sockets

    async def follow(self, run_id: int, after: int, subscription: Subscription) -> AsyncIterator[str] | None:
        """All messages of a run from event `after` on, without end; None if there is no such run.

        The caller must `leave` in the end.
        """
        self._start()
        if run_id not in self._watched:
            first = await self._in(self._reader, lambda: reading.first_look(run_id))
            if first is None:
                return None
            self._watched.setdefault(run_id, Watched(run_id, first))
        watched = self._watched[run_id]
        watched.subscriptions.add(subscription)
        self._stale = True  # a read under way may have passed over commits that came after the first look
        self._wake.set()
        opening = [wire.status_message(watched.status)]
        if after > watched.tail:
            opening.append(wire.reset_message())
            after = 0
        closing = [*watched.open_drafts(), wire.ready_message(watched.tail)]
        return self._messages(run_id, after, watched.tail, subscription, opening, closing)

    async def _messages(
        self, run_id: int, after: int, until: int, subscription: Subscription, opening: list[str], closing: list[str]
    ) -> AsyncIterator[str]:
        for message in opening:
            yield message
        while after < until:
            replayed = await self._in(self._replays, lambda since=after: reading.page(run_id, since, until))  # type: ignore[misc]
            if replayed is None:
                break
            message, after = replayed
            yield message
        for message in closing:
            yield message
        while True:
            yield await subscription.next()

    def leave(self, run_id: int, subscription: Subscription) -> None:
        """A socket is gone."""
        watched = self._watched.get(run_id)
        if watched is not None:
            watched.subscriptions.discard(subscription)
            if not watched.subscriptions:
                del self._watched[run_id]

    def follow_lists(self, subscription: Subscription) -> None:
        """Tell this socket what changes in the lists, until `leave_lists`.

        Its first message, of no change, says from when on: whoever reads a list then misses nothing.
        """
        self._start()
        self._list_subscriptions.add(subscription)
        self._lists_stale = True
        if self._lists is not None:
            subscription.offer(wire.changed_message([], []))
        self._wake.set()

    def leave_lists(self, subscription: Subscription) -> None:
        """A socket is gone."""
        self._list_subscriptions.discard(subscription)
        if not self._list_subscriptions:
            self._lists = None

    def follow_notices(self, person_id: int, subscription: Subscription) -> None:
        """Tell this socket how many notices the person has not read, now and whenever that changes."""
        self._start()
        self._people.setdefault(person_id, set()).add(subscription)
        self._unread = {
            pk: known for pk, known in self._unread.items() if pk != person_id
        }  # told to all of theirs anew
        self._lists_stale = True
        self._wake.set()

    def leave_notices(self, person_id: int, subscription: Subscription) -> None:
        """A socket is gone."""
        mine = self._people.get(person_id, set())
        mine.discard(subscription)
        if not mine:
            self._people.pop(person_id, None)

    # --- reading

    def _start(self) -> None:
        if not self._tasks:
            self._tasks = {asyncio.create_task(self._tail()), asyncio.create_task(self._listen())}

    async def _tail(self) -> None:
        while True:
            await self._pause()
            if self._idle:
                continue
            try:
                await self._look()
            except DatabaseError as problem:
                self._stale = True
                log.warning("The live view can't read the database, trying again: %s", problem)
                await self._in(self._reader, connections.drop)
                await asyncio.sleep(1.0)

    async def _pause(self) -> None:
        await asyncio.sleep(_BETWEEN_READS)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), None if self._idle else self._timer())
        self._wake.clear()

    @property
    def _idle(self) -> bool:
        return not self._watched and not self._list_subscriptions and not self._people

    def _timer(self) -> float:
        if settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"):
            return _TIMER_SQLITE
        return _TIMER_WITH_BELL if self._bell_works else _TIMER_WITHOUT

    async def _look(self) -> None:
        now = time.monotonic()
        anyway = self._stale or now - self._looked > _LOOK_ANYWAY
        self._stale = False
        tails = {run_id: watched.tail for run_id, watched in self._watched.items()}
        lists_due = bool(self._list_subscriptions or self._people) and now - self._lists_read >= _LISTS_EVERY
        lists_stale = self._lists_stale
        if lists_due:
            self._lists_stale = False  # here and not once they are read: who joins meanwhile is not among these people
        people, with_rows = set(self._people), bool(self._list_subscriptions)

        def read() -> tuple[bool, dict[int, Snapshot], Lists | None]:
            """In the reader's thread: what was committed since the last time, and the lists if they are due and changed."""
            changed = self._versions.changed() or anyway
            snapshots = reading.snapshots(tails) if tails and changed else {}
            wanted = lists_due and (lists_stale or changed)
            return changed, snapshots, reading.lists(people, with_rows=with_rows) if wanted else None

        changed, snapshots, lists = await self._in(self._reader, read)
        if changed and not lists_due:
            self._lists_stale = True
        if anyway:
            self._looked = now
        for run_id, snapshot in snapshots.items():
            if run_id in self._watched:
                self._watched[run_id].take(snapshot)
        if lists is not None:
            self._lists_read = now
            self._tell_notices(lists.unread)
            if with_rows:
                self._tell_lists(lists)

    def _tell_lists(self, lists: Lists) -> None:
        before, self._lists = self._lists, lists
        if before is None:
            for subscription in self._list_subscriptions:
                subscription.offer(wire.changed_message([], []))
            return
        runs = [status for run_id, status in lists.runs.items() if before.runs.get(run_id) != status]
        hosts = [name for name in {**before.hosts, **lists.hosts} if before.hosts.get(name) != lists.hosts.get(name)]
        if runs or hosts:
            message = wire.changed_message(runs, hosts)
            for subscription in self._list_subscriptions:
                subscription.offer(message)

    def _tell_notices(self, unread: Mapping[int, tuple[int, int]]) -> None:
        before, self._unread = self._unread, unread
        for person_id, known in unread.items():
            if before.get(person_id) != known:
                for subscription in self._people.get(person_id, ()):
                    subscription.offer(wire.notices_message(*known))

    async def _listen(self) -> None:
        """Hear the bell; while it is away the timer alone wakes."""
        while True:
            try:
                async with redis.asyncio.from_url(settings.REDIS_URL) as server, server.pubsub() as ears:
                    await ears.subscribe(bell.CHANNEL, jobs_bell.CHANNEL)
                    self._bell_works = True
                    async for _ in ears.listen():
                        self._wake.set()
            except (redis.RedisError, OSError) as problem:
                log.info("The bell is away, reading by the timer: %s", problem)
            self._bell_works = False
            await asyncio.sleep(1.0)

    async def close(self) -> None:
        """End the tasks and threads, for event loops that end before their process."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = set()
        self._reader.shutdown()
        self._replays.shutdown()

    async def _in(self, executor: ThreadPoolExecutor, read: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(executor, read)


_tailers: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Tailer] = weakref.WeakKeyDictionary()


def tailer() -> Tailer:
    """The tailer of the running event loop: one a web process."""
    loop = asyncio.get_running_loop()
    if loop not in _tailers:
        _tailers[loop] = Tailer()
    return _tailers[loop]
