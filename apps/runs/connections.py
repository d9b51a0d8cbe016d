"""This thread's database connection, when the database was away."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import DatabaseError, InterfaceError, OperationalError, connection

# What a database that is restarted, unreachable or locked for too long raises; worth another try.
AWAY = (OperationalError, InterfaceError)
# How long what is paid for waits for a database that is away, and between its tries.
PATIENCE = 120.0  # seconds
PAUSE = 1.0

T = TypeVar("T")

log = logging.getLogger(__name__)


def drop() -> None:
    """Close this thread's connection, whatever state it is in; the next query opens a new one."""
    try:
        connection.close()
    except DatabaseError:
        connection.connection = None


def patient(do: Callable[[], T], about: object, wait: Callable[[float], object] = time.sleep) -> T:
    """What `do` gives, tried again while the database is away, at most for `PATIENCE`; `wait` may raise to end that."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return do()
        except AWAY as problem:
            if time.monotonic() > until:
                raise
            log.warning("%s: the database is away, trying again: %s", about, problem)
            drop()
            wait(PAUSE)
