"""A compiler run in a jail of its own, for what it says of a candidate's source; nothing it makes is kept."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from apps.kernels.jail.channel import Channel
from apps.kernels.plain import Plain

SAID_KEPT = 24 << 20  # bytes of diagnostics; the vectoriser's whole log of a long kernel is a few MiB


def main(channel: Channel, payload: Plain) -> None:
    """Run `payload["command"]` beside a file of `payload["source"]` and answer with what it wrote on stderr."""
    directory = Path(os.environ["HOME"])
    (directory / payload["name"]).write_text(payload["source"], encoding="utf-8")
    try:
        done = subprocess.run(payload["command"], cwd=directory, capture_output=True, timeout=payload["seconds"])
    except subprocess.TimeoutExpired:
        channel.send({"failed": f"it did not finish in {payload['seconds']} s"})
        return
    except OSError as problem:
        channel.send({"failed": f"it does not run: {problem.strerror}"})
        return
    if done.returncode:
        channel.send({"failed": f"it ended with {done.returncode}"})
        return
    channel.send({"said": done.stderr[:SAID_KEPT].decode("utf-8", "replace")})
