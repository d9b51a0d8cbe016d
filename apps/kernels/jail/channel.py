"""Messages between the judge and a jailed process: length, kind, bytes, on a private socket.

The judge believes nothing that comes out of it: sizes are bounded, broken frames raise `ChannelBroken`.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time

from apps.kernels.plain import Plain

HEADER = struct.Struct("<IB")
JSON, BYTES = 0, 1
LIMIT = 64 << 20


class ChannelBroken(Exception):
    """The other side is gone, or sent what is no message."""


class ChannelForged(ChannelBroken):
    """What came is no message that the judge's own code in the jail would send."""


class ChannelTimeout(Exception):
    """The other side said nothing within the time it was given."""


class Channel:
    """One end of a stream socket that carries JSON objects and byte strings."""

    def __init__(self, end: socket.socket, files: tuple[int, ...] = ()) -> None:
        self.socket = end
        self.files = files
        end.setblocking(True)
        self._wait = select.poll()
        self._wait.register(end.fileno(), select.POLLIN)

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self.socket.fileno()

    def has_something(self, within_ms: int = 0) -> bool:
        """Whether there is something to receive within so many milliseconds, or nothing more will come."""
        return bool(self._wait.poll(within_ms))

    def send(self, message: Plain) -> None:
        """Send one JSON object."""
        data = json.dumps(message, separators=(",", ":")).encode()
        try:
            self.socket.sendall(HEADER.pack(len(data), JSON) + data)
        except OSError as problem:
            raise ChannelBroken(f"cannot send: {problem}") from None

    def receive(self, timeout: float | None = None) -> dict[str, Plain]:
        """The next message, which must be a JSON object."""
        kind, data = self._receive(timeout)
        if kind != JSON:
            raise ChannelForged("expected an object, got bytes")
        try:
            message = json.loads(data)
        except (ValueError, RecursionError) as problem:
            raise ChannelForged(f"not JSON: {problem}") from None
        if not isinstance(message, dict):
            raise ChannelForged("expected an object")
        return message

    def receive_bytes(self, timeout: float | None = None) -> bytes:
        """The next message, which must be a byte string."""
        kind, data = self._receive(timeout)
        if kind != BYTES:
            raise ChannelForged(data[:20000].decode("utf-8", "replace"))
        return data

    def close(self) -> None:
        """Close this end."""
        self.socket.close()

    def _receive(self, timeout: float | None) -> tuple[int, bytes]:
        deadline = None if timeout is None else time.monotonic() + timeout
        size, kind = HEADER.unpack(self._exactly(HEADER.size, deadline))
        if size > LIMIT or kind not in (JSON, BYTES):
            raise ChannelForged(f"a message of {size} bytes and kind {kind}")
        return kind, self._exactly(size, deadline)

    def _exactly(self, size: int, deadline: float | None) -> bytes:
        data = b""
        while len(data) < size:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._wait.poll(None if left is None else left * 1000):
                raise ChannelTimeout
            try:
                part = self.socket.recv(min(size - len(data), 1 << 20))
            except OSError as problem:
                raise ChannelBroken(str(problem)) from None
            if not part:
                raise ChannelBroken("the other side closed")
            data += part
        return data
