"""A jailed process that says how it finds itself; what `host` and the jail's tests look with."""

from __future__ import annotations

import os
import sys
import time

from apps.kernels.jail.channel import Channel
from apps.kernels.plain import Plain


def look(channel: Channel, payload: Plain) -> None:
    """Answer with user, process id, directory, environment and what the root directory holds."""
    channel.send(
        {
            "uid": os.getuid(),
            "pid": os.getpid(),
            "cwd": os.getcwd(),  # noqa: PTH109 - as the process sees it
            "environment": dict(os.environ),
            "torch": "torch" in sys.modules,
            "echo": payload,
        }
    )


def run(channel: Channel, payload: Plain) -> None:
    """Execute `payload["code"]` with `channel` at hand; the jail's own tests are written this way."""
    exec(payload["code"], {"channel": channel, "payload": payload, "time": time, "os": os})  # noqa: S102 - jailed
