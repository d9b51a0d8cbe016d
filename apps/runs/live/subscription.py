"""One socket's bounded queue: who reads too slowly is cut off and comes back for what it missed."""

from __future__ import annotations

import asyncio

CAPACITY = 400  # messages; at 20 a second a client may be stuck for 20 s


class TooSlow(Exception):
    """The client did not keep up. It reconnects with the number of the last event it has."""


class Subscription:
    """What the tailer puts in and a socket takes out, both in the same event loop."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._queue: asyncio.Queue[str] = asyncio.Queue(capacity)
        self._overflowed = False

    def offer(self, message: str) -> None:
        """Add a message; once one did not fit, no more are taken."""
        if self._overflowed:
            return
        try:
            self._queue.put_nowait(message)
        except asyncio.QueueFull:
            self._overflowed = True

    async def next(self) -> str:
        """The next message. Raises `TooSlow` where one was lost."""
        if self._overflowed:
            raise TooSlow
        return await self._queue.get()
