"""Waking the agents' workers. The run's row is the queue: a message only says that there is something to take.

A lost message costs a few seconds (lost runs are looked for all the time), a double one nothing (claims are conditional).
"""

from __future__ import annotations

import logging

from django.db import transaction
from kombu.exceptions import OperationalError

log = logging.getLogger(__name__)


def wake_on_commit(run_id: int) -> None:
    """Tell the workers of the run when the open transaction commits."""
    transaction.on_commit(lambda: wake(run_id))


def wake(run_id: int) -> None:
    """Tell the workers that this run waits. Never raises: without a broker the run waits until one is back."""
    from apps.runs.tasks import work_on_run

    try:
        work_on_run.apply_async((run_id,), retry=False, expires=60)
    except (OperationalError, OSError) as problem:
        log.warning("Run %s waits in the queue until the broker is back: %s", run_id, problem)
