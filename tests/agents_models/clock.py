"""The clock of model calls in tests: it runs while the server keeps silent on purpose, and not while the machine is slow.

So a time-out of a second is one of a second of silence, and no answer that is on its way comes too late, however long the
machine stands still.
"""

from __future__ import annotations

from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from apps.agents.gateway import streaming
from apps.agents.gateway.streaming import Stream
from tests.agents_models.server import Script

_LONGEST_LOOK = 2 * streaming._LOOK_EVERY  # seconds; what lies further apart is the machine's pause
_BY_ITSELF = 600.0  # seconds after which litellm would give up: on a clock of its own


class Clock:
    """Time as calls see it."""

    def __init__(self, script: Script) -> None:
        self.stopped = False  # while it is, nothing times out
        self._script = script
        self._looked: WeakKeyDictionary[Stream, float] = WeakKeyDictionary()

    def put(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """All calls of this process look at it."""
        look, parameters = Stream._watch_the_clock, streaming._parameters

        def watch(stream: Stream) -> None:
            pause = self._pause(stream)
            stream._began += pause
            stream._heard += pause
            look(stream)

        def patient(*words: Any) -> dict[str, Any]:
            return parameters(*words) | {"timeout": _BY_ITSELF}

        monkeypatch.setattr(Stream, "_watch_the_clock", watch)
        monkeypatch.setattr(streaming, "_parameters", patient)

    def _pause(self, stream: Stream) -> float:
        """How much of the time since the last look doesn't count."""
        now = monotonic()
        passed = now - self._looked.get(stream, stream._began)
        self._looked[stream] = now
        runs = self._script.silent and not self.stopped
        return max(0.0, passed - _LONGEST_LOOK) if runs else passed
