"""What the command line's exit codes say, and the errors that end it with one."""

from __future__ import annotations

GOOD = 0  # verdict correct; facts or report given
OTHER_VERDICT = 1
BAD_INPUT = 2  # bad usage, unreadable input, a problem that can't be judged
HOST_FAILED = 3  # this host could not judge
INTERRUPTED = 130


class Ending(Exception):
    """Ends the command with a message for the person and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class BadInput(Ending):
    """What was asked for can't be done with this input."""

    def __init__(self, message: str) -> None:
        super().__init__(message, BAD_INPUT)


class HostFailed(Ending):
    """This host could not do it; nothing is said of problem or candidate."""

    def __init__(self, message: str) -> None:
        super().__init__(message, HOST_FAILED)
