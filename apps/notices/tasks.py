"""The server worker's task that sends what is due."""

from __future__ import annotations

from celery import shared_task

from apps.notices import delivering, telling


@shared_task(name=telling.TASK, queue=telling.QUEUE, ignore_result=True)
def deliver() -> None:
    """Every few seconds, and whenever something was put into the post."""
    delivering.deliver_due()
