"""What can't be launched or taken in; `Refused` itself is what every room raises."""

from __future__ import annotations

from typing import ClassVar

from apps.people.refusals import Refused

__all__ = ["LaunchRefused", "ProblemRefused", "Refused", "TranscriptRefused"]


class LaunchRefused(Refused):
    """A run that can't be launched; nothing was created."""

    faulty: ClassVar[bool] = True


class ProblemRefused(Refused):
    """A problem that can't be taken in; nothing was created."""

    faulty: ClassVar[bool] = True


class TranscriptRefused(Refused):
    """A transcript that can't be taken in; nothing was created."""

    faulty: ClassVar[bool] = True
