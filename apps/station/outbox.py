"""Reports that must arrive: on disk until the broker has taken them, so that no result is lost to an outage."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from apps.kernels.plain import BadPlain, from_plain, to_plain
from apps.station.messages import Report

log = logging.getLogger(__name__)

Send = Callable[[Report], bool]  # whether the broker took it


class Outbox:
    """A directory of reports, sent in the order in which they were put there."""

    def __init__(self, directory: Path, send: Send) -> None:
        self._directory = directory
        self._send = send
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        directory.mkdir(parents=True, exist_ok=True)

    def put(self, report: Report) -> None:
        """Keep the report, then try to send all that is kept."""
        path = self._directory / f"{time.time_ns():020d}-{next(self._numbers):06d}.json"
        part = path.with_suffix(".part")
        with part.open("w") as file:
            json.dump(to_plain(report), file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        self.flush()

    def flush(self) -> int:
        """Send what is kept, oldest first, as far as the broker takes it; how many are left."""
        with self._lock:
            waiting = sorted(self._directory.glob("*.json"))
            for position, path in enumerate(waiting):
                report = self._read(path)
                if report is not None and not self._send(report):
                    return len(waiting) - position
                with contextlib.suppress(FileNotFoundError):
                    path.unlink()
            return 0

    def _read(self, path: Path) -> Report | None:
        try:
            return from_plain(Report, json.loads(path.read_text()))
        except (OSError, ValueError, BadPlain) as problem:
            log.error("A kept report can't be read and is dropped: %s: %s", path.name, problem)
            return None
