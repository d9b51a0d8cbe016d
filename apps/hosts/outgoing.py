"""What the server sends through the broker for hosts. Losing one of these costs seconds, never truth: rows are the queue,
and stations are told again what they have missed. So nothing here raises for a broker that is away.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from apps.kernels.plain import to_plain
from apps.station.messages import (
    CANCEL,
    INTRODUCE,
    REPORTS_QUEUE,
    WORK,
    Order,
    device_queue,
    node_name,
)

DISPATCH = "hosts.dispatch"

log = logging.getLogger(__name__)


def order(host: str, what: Order) -> bool:
    """Put an order on its device's queue; whether the broker took it."""
    return _send(WORK, [to_plain(what)], device_queue(host, what.device))


def nudge_on_commit(device_id: int) -> None:
    """Have the server worker look whether the device can take a job, once the open transaction is committed."""
    transaction.on_commit(partial(nudge, device_id))


def nudge(device_id: int) -> None:
    """Have the server worker look at the device now."""
    _send(DISPATCH, [device_id], REPORTS_QUEUE, expires=30)


def cancel(host: str, job: int, attempt: int) -> None:
    """Tell a host's station to stop working on that attempt."""
    _broadcast(host, CANCEL, job=job, attempt=attempt)


def introduce(host: str) -> None:
    """Ask a host's station to say what it is."""
    _broadcast(host, INTRODUCE)


def _send(name: str, arguments: list[Any], queue: str, **options: Any) -> bool:
    try:
        current_app.send_task(name, args=arguments, queue=queue, retry=False, ignore_result=True, **options)
    except (OperationalError, RedisError, OSError) as problem:
        log.warning("The broker did not take %s: %s", name, problem)
        return False
    return True


def _broadcast(host: str, command: str, **arguments: Any) -> None:
    try:
        current_app.control.broadcast(command, arguments=arguments, destination=[node_name(host)], reply=False)
    except (OperationalError, RedisError, OSError) as problem:
        log.warning("The broker did not take %s for %s: %s", command, host, problem)
