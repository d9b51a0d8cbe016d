"""How long tests wait for what must come. A wait ends when the thing is there, so the limit only bounds a failure.

It is wide since a machine shared with others may stand still for tens of seconds. What must *not* come is shown by what is
there after something that comes later, and not by having waited a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

PATIENCE = 60.0  # seconds; a test has 300 in all


def until(condition: Callable[[], Any], complaint: str = "it never came to that", within: float = PATIENCE) -> Any:
    """What the condition says once that is true; fails with the complaint where it doesn't become true."""
    limit = time.monotonic() + within
    while not (found := condition()):
        assert time.monotonic() < limit, complaint
        time.sleep(0.02)
    return found
