"""Where a host keeps what it measured once: a directory of small JSON files, each with its date."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import TypeVar

from apps.kernels.plain import BadPlain, from_plain, to_plain

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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False) as part:
            json.dump(to_plain(value), part, indent=1)
        Path(part.name).replace(path)
    except OSError:
        return
