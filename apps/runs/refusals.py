"""What a person asked for and can't have: each message says why and what to do. Pages, API and command line show it."""

from __future__ import annotations


class Refused(Exception):
    """A request that can't be carried out as things stand. `field` names the input to blame, if it is one."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class LaunchRefused(Refused):
    """A run that can't be launched; nothing was created."""


class ProblemRefused(Refused):
    """A problem that can't be taken in; nothing was created."""
