"""The ledger's Celery task, for agents workers."""

from __future__ import annotations

from celery import shared_task
from django.db import close_old_connections

from apps.ledger import trials


@shared_task(name=trials.TASK, ignore_result=True)
def try_model(number: int) -> None:
    """Carry out a trial of a model."""
    close_old_connections()
    trials.carry_out(number)
