"""One call of a model, as pieces that arrive: made in a thread of its own, so that it can be ended at any moment.

All calls of a process share one event loop: litellm keeps its connections by loop, and cancelling a task there closes
the call's connection at once, whatever it was waiting for.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from time import monotonic
from typing import Any

from apps.agents.gateway.provider import litellm, longest_answer
from apps.agents.gateway.purse import Question
from apps.agents.gateway.settings import ModelSettings

_LOOK_EVERY = 0.1  # seconds between looks at the clocks
_HEED_EVERY = 0.25  # seconds between looks at orders, which may cost a query
_NO_KEY = "no-key"  # litellm would take one from the environment and send it to whatever address is set
_LONGEST_GOODBYE = 0.5

Heed = Callable[[], None]


@dataclass(frozen=True)
class Piece:
    """Text as it came."""

    reasoning: str
    answer: str


@dataclass(frozen=True)
class Finish:
    """The stream's own end: why it ended, and what the server counted (litellm's `Usage`), if it did."""

    reason: str | None
    counted: Any


@dataclass(frozen=True)
class Broke:
    """The end of a stream that did not end by itself."""

    problem: Exception


class Broken(Exception):
    """The call failed; `problem` is what litellm raised, its text not scrubbed."""

    def __init__(self, problem: Exception) -> None:
        super().__init__("The call failed.")
        self.problem = problem


class Silent(TimeoutError):
    """No text for too long."""


class TooLong(TimeoutError):
    """Text kept coming past the longest time a call may take."""


class _Loop:
    """The event loop of all calls, started with the first one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def get(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                threading.Thread(target=loop.run_forever, name="model-calls", daemon=True).start()
                self._loop = loop
            return self._loop


_loop = _Loop()


class Stream:
    """A call on its way. Iterating gives `Piece`s; afterwards `finish` is set.

    Iterating raises `Broken`, `Silent` and `TooLong`, and whatever `heed` raises to end the call. In every case the
    connection is closed.
    """

    def __init__(self, settings: ModelSettings, question: Question, heed: Heed) -> None:
        self.finish: Finish | None = None
        self._settings = settings
        self._heed = heed
        self._arrived: queue.Queue[Piece | Finish | Broke] = queue.Queue()
        litellm()  # loading takes seconds: here, and not in the loop that other calls share
        self._began = self._heard = self._heed_next = monotonic()
        self._gone = threading.Event()
        self._call: Future[None] = asyncio.run_coroutine_threadsafe(
            _receive(_parameters(settings, question), self._arrived, self._gone), _loop.get()
        )

    @property
    def seconds(self) -> float:
        """Since the call was made."""
        return monotonic() - self._began

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Piece:
        if self.finish is not None:
            raise StopIteration
        try:
            arrived = self._next()
        except BaseException:
            self.close()
            raise
        if isinstance(arrived, Broke):
            self.close()
            raise Broken(arrived.problem)
        if isinstance(arrived, Finish):
            self.finish = arrived
            raise StopIteration
        return arrived

    def close(self) -> None:
        """End the call. Waits a moment for its connection to be closed."""
        self._call.cancel()
        self._gone.wait(_LONGEST_GOODBYE)

    def _next(self) -> Piece | Finish | Broke:
        while True:
            self._heed_orders()
            self._watch_the_clock()
            try:
                arrived = self._arrived.get(timeout=_LOOK_EVERY)
            except queue.Empty:
                continue
            self._heard = monotonic()
            return arrived

    def _heed_orders(self) -> None:
        if monotonic() >= self._heed_next:
            self._heed()
            self._heed_next = monotonic() + _HEED_EVERY

    def _watch_the_clock(self) -> None:
        now = monotonic()
        if now - self._began > self._settings.wall_seconds:
            raise TooLong
        if now - self._heard > self._settings.read_seconds and self._arrived.empty():
            raise Silent


def _parameters(settings: ModelSettings, question: Question) -> dict[str, Any]:
    key = settings.key.reveal() if settings.key else (_NO_KEY if settings.api_base else None)
    temperature = question.temperature if settings.temperature is None else settings.temperature
    return {
        "model": settings.name,
        "messages": [{"role": message.role, "content": message.text} for message in question.messages],
        "api_base": settings.api_base,
        "api_key": key,
        "max_tokens": longest_answer(settings, question),
        "temperature": temperature,
        "timeout": settings.read_seconds + 5.0,  # ours comes first and says more
        "max_retries": 0,  # tries are counted, paid and told one by one (`apps.agents.gateway.asking`)
        "stream": True,
        "stream_options": {"include_usage": True},
        "drop_params": True,
    }


async def _receive(
    parameters: dict[str, Any], arrived: queue.Queue[Piece | Finish | Broke], gone: threading.Event
) -> None:
    reason: str | None = None
    stream: Any = None
    try:
        stream = await litellm().acompletion(**parameters)
        async for chunk in stream:
            choice = chunk.choices[0] if chunk.choices else None
            reason = (choice.finish_reason if choice else None) or reason
            delta = choice.delta if choice else None
            piece = Piece(getattr(delta, "reasoning_content", None) or "", getattr(delta, "content", None) or "")
            if piece.reasoning or piece.answer:
                arrived.put(piece)
        arrived.put(Finish(reason, _counted(stream)))
    except Exception as problem:
        arrived.put(Broke(problem))
    finally:
        try:
            if stream is not None:
                await stream.aclose()
        finally:
            gone.set()


def _counted(stream: Any) -> Any:
    """What the server itself counted. litellm estimates silently where it did not; its own chunks tell the two apart."""
    counts = [usage for chunk in getattr(stream, "chunks", ()) if (usage := getattr(chunk, "usage", None)) is not None]
    return counts[-1] if counts else None
