"""The station's Celery app: one queue for each device, orders as tasks, cancellations as broadcasts."""

from __future__ import annotations

from celery import Celery
from kombu import Exchange, Queue

from apps.station.broker import celery_url, shared_settings, transport_options
from apps.station.messages import device_queue

# An order is acknowledged before it is worked on, so that the broker never hands it out twice by itself: what becomes of
# a lost one is the server's business alone. Only orders still unread when a station died come back, and are stale then.
VISIBILITY_SECONDS = 3600


def make_app(broker: str, host: str, devices: tuple[str, ...]) -> Celery:
    """A Celery app that consumes the queues of `devices` on `host`."""
    app = Celery("station", broker=celery_url(broker), set_as_current=False, fixups=[])
    app.conf.update(shared_settings())
    app.conf.update(
        broker_transport_options=transport_options(VISIBILITY_SECONDS, f"station.{host}"),
        task_queues=[queue(device_queue(host, device)) for device in devices],
        task_acks_late=False,
    )
    return app


def queue(name: str) -> Queue:
    """A direct queue whose exchange and routing key have its own name."""
    return Queue(name, Exchange(name, type="direct"), routing_key=name)
