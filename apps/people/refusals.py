"""What a person asked for and can't have: each message says why and what to do. Pages, API and command line show it."""

from __future__ import annotations

from typing import ClassVar


class Refused(Exception):
    """A request that can't be carried out as things stand. `field` names the input to blame, if it is one."""

    # Whether the request itself is at fault (HTTP 400) rather than the state of things (409).
    faulty: ClassVar[bool] = False

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.field = field
