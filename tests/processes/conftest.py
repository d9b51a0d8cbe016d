"""What tests that start and kill agents workers share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from apps.hosts import outgoing
from apps.runs import queue
from tests.processes.agents_workers import Workers, agents_workers


@pytest.fixture
def workers(settings: Any, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Agents workers on this test's database, and a broker that writes everything down.

    The test wakes them itself: its own process knows the broker of the settings alone, which isn't there, and would wait
    seconds for it at each launch and each judgement.
    """
    monkeypatch.setattr(queue, "wake", lambda run_id: None)
    monkeypatch.setattr(outgoing, "_send", lambda *args, **options: False)
    monkeypatch.setattr(outgoing, "_broadcast", lambda *args, **options: None)
    with agents_workers(settings) as made:
        yield made
