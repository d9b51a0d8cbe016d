"""This thread's database connection, when the database was away."""

from __future__ import annotations

from django.db import DatabaseError, InterfaceError, OperationalError, connection

# What a database that is restarted, unreachable or locked for too long raises; worth another try.
AWAY = (OperationalError, InterfaceError)


def drop() -> None:
    """Close this thread's connection, whatever state it is in; the next query opens a new one."""
    try:
        connection.close()
    except DatabaseError:
        connection.connection = None
