"""Waking the agents' workers. The run's row is the queue: a message only says that there is something to take.

A lost message costs a few seconds (lost runs are looked for all the time), a double one nothing (claims are conditional).
"""

from __future__ import annotations

import logging

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

TASK, QUEUE = "runs.work", "runs"

log = logging.getLogger(__name__)


def wake_on_commit(run_id: int) -> None:
    """Tell the workers of the run when the open transaction commits."""
    transaction.on_commit(lambda: wake(run_id))


def wake(run_id: int) -> None:
    """Tell the workers that this run waits. Never raises: without a broker the run waits until one is back."""
    try:
        current_app.send_task(TASK, args=[run_id], queue=QUEUE, retry=False, ignore_result=True, expires=60)
    except (OperationalError, RedisError, OSError) as problem:
        log.warning("Run %s waits in the queue until the broker is back: %s", run_id, problem)
