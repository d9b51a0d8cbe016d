"""Celery tasks of the server worker: reports in, orders out, lost ones found. Each parses, calls a service and returns."""

from __future__ import annotations

import logging
import time
from typing import Any

import redis
from celery import shared_task
from django.db import InterfaceError, OperationalError, connection

from apps.hosts import dispatch as dispatching
from apps.hosts import lost, outgoing, reports, silence, uptime
from apps.kernels.plain import BadPlain, from_plain
from apps.station.messages import REPORTS_QUEUE, TAKE_REPORT, Report

_TRIES = 5

log = logging.getLogger(__name__)


@shared_task(name=TAKE_REPORT, queue=REPORTS_QUEUE, ignore_result=True, acks_late=True)
def take_report(plain: Any) -> None:
    """Take in one report. A database that is away is waited for: the broker hands the report out again otherwise."""
    try:
        report = from_plain(Report, plain)
    except BadPlain as problem:
        log.error("A report can't be read and is dropped; is its station of this version? %s", problem)
        return
    for attempt in range(1, _TRIES + 1):
        try:
            reports.take(report, uptime.up_since())
            return
        except BadPlain as problem:
            log.error("Report %s of %s can't be read and is dropped: %s", report.kind.value, report.host, problem)
            return
        except (OperationalError, InterfaceError) as problem:
            log.warning("The database did not take a report (try %s): %s", attempt, problem)
            connection.close()
            time.sleep(attempt)
    raise take_report.retry(countdown=5, max_retries=None)


@shared_task(name=outgoing.DISPATCH, queue=REPORTS_QUEUE, ignore_result=True)
def dispatch(device_id: int) -> None:
    """Hand the device its next job if it can take one."""
    dispatching.dispatch(device_id)


@shared_task(name="hosts.look", queue=REPORTS_QUEUE, ignore_result=True)
def look() -> None:
    """Every two seconds: take back what silent stations had, and hand out what waits."""
    try:
        up_since = uptime.tick()
        lost.find_lost(up_since)
        silence.tell_silent(up_since)
    except redis.RedisError as problem:
        log.warning("The broker does not answer, so nobody can be called silent: %s", problem)
        return
    dispatching.dispatch_all()
