"""What the same code against itself showed on this host: written by a calibration, read by every full judgement."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from apps.kernels.judge.compiled import cache_directory


def _path() -> Path:
    return cache_directory() / "noise.json"


def keep_noise(largest: dict[str, float]) -> Path:
    """Keep the largest A/A log ratio by kind of call; returns where."""
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(largest, indent=1) + "\n", encoding="utf-8")
    return path


def read_noise() -> dict[str, float]:
    """What was kept; empty where this host was never calibrated (then margins are 1%)."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        found = json.loads(_path().read_text(encoding="utf-8"))
        return {str(kind): float(ratio) for kind, ratio in found.items()}
    return {}
