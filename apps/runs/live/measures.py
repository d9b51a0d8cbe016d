"""What this web process itself knows for Prometheus: who listens, and how late events are when they are sent on."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.utils import timezone
from prometheus_client import Gauge, Histogram

from apps.runs.models import Event

CLIENTS = Gauge("pragma_websocket_clients", "Websockets that are open in this process", ["socket"])
LAG = Histogram(
    "pragma_event_lag_seconds",
    "From an event being written to its being sent on to the sockets of this process",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
_NOT_LIVE = 3600.0  # an event of an imported run bears the time at which it happened elsewhere


def note_sent(events: Iterable[Event], now: datetime | None = None) -> None:
    """These events go out now."""
    now = now or timezone.now()
    for event in events:
        lag = (now - event.at).total_seconds()
        if 0 <= lag < _NOT_LIVE:
            LAG.observe(lag)
