"""The keeper's word on exec, fork and new code: yes while its prisoner builds, no once it is judged; never too many at once.

A filter put on at the very start (`seccomp.watch_starts`) has the kernel hold each such call until the keeper has
answered. The answer depends on nothing but the phase and the number of processes, so nothing the caller does to its memory
meanwhile matters. Needs Linux 5.5.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import platform
import re
import struct
from collections.abc import Callable

NOTIF_RECV, NOTIF_SEND = 0xC0502100, 0xC0182101
NOTIFICATION, RESPONSE = struct.Struct("<QIIiI56x"), struct.Struct("<QqiI")
GO_ON = 1  # SECCOMP_USER_NOTIF_FLAG_CONTINUE
NEW_PROCESSES = (56, 57, 58)  # clone, fork, vfork; what else is asked takes no room


def kernel() -> tuple[int, int]:
    """The running kernel's version."""
    release = re.match(r"(\d+)\.(\d+)", platform.release())
    return (int(release[1]), int(release[2])) if release else (0, 0)


def supported() -> bool:
    """Whether the kernel lets such a call go on after it was asked about."""
    return kernel() >= (5, 5)


class Starts:
    """Answers at `descriptor`. `room` says how many more processes there may be now."""

    def __init__(self, descriptor: int, room: Callable[[], int]) -> None:
        self.descriptor = descriptor
        self.judged = False
        self._room = room
        self._left = 0

    def answer(self) -> None:
        """Answer one call; it may have been taken back meanwhile."""
        asked = bytearray(NOTIFICATION.size)
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.descriptor, NOTIF_RECV, asked)
            identity, _, _, number, _ = NOTIFICATION.unpack(asked)
            error = self._refusal(number)
            fcntl.ioctl(self.descriptor, NOTIF_SEND, RESPONSE.pack(identity, 0, -error, 0 if error else GO_ON))

    def _refusal(self, number: int) -> int:
        """The error that the call gets, 0 where it may go on."""
        if self.judged:
            return errno.EPERM
        if number not in NEW_PROCESSES:
            return 0
        if self._left <= 0:  # counting anew costs a walk through /proc, so only where what was counted is used up
            self._left = self._room()
        self._left -= 1
        return 0 if self._left >= 0 else errno.EAGAIN
