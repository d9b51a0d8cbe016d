"""Where a host keeps what it measured once: a directory of small JSON files, each with its date."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import TypeVar

from apps.kernels.plain import BadPlain, from_plain, to_plain
from apps.kernels.temporary import write_whole

T = TypeVar("T")


def measurements_directory() -> Path:
    """$PRAGMA_MEASUREMENTS where set, else `pragma` in the user's cache directory."""
    if chosen := os.environ.get("PRAGMA_MEASUREMENTS"):
        return Path(chosen)
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "pragma"


def digest(*parts: str) -> str:
    """Twelve hexadecimal digits that stand for these texts in this order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def read_measurement(kind: type[T], path: Path) -> T | None:
    """What was kept at `path`, or None where there is nothing or nothing that this version can read."""
    try:
        return from_plain(kind, json.loads(path.read_text()))
    except (OSError, ValueError, BadPlain):
        return None


def keep_measurement(value: object, path: Path) -> None:
    """Writes it whole or not at all. A directory that can't be written is no error: it is measured again next time."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(to_plain(value), indent=1).encode())
