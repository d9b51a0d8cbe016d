"""Events from a writer in one process to browsers of another, through a real web process and a real broker."""

from __future__ import annotations

import pytest

from bench import live_events
from bench.private_servers import NotHere

pytestmark = pytest.mark.processes


def test_each_event_reaches_each_browser_once_and_in_order() -> None:
    try:
        found = live_events.measure(live_events.Load(seconds=2.0, clients=8, runs=2, rate=40))
    except NotHere as missing:
        pytest.skip(str(missing))
    assert found.received == 8 * 80
    assert (found.gaps, found.doubles) == (0, 0)
