"""What the same code against itself shows on this host: kept from full judgements made here, read by later ones.

Every full judgement times its reference in two processes a group, so that each is an A/A measurement as well; those that
no other program disturbed are kept. A margin comes from earlier judgements only, never from the one it is used in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from apps.kernels.host.store import keep_measurement, measurements_directory, read_measurement

KEPT = 60  # of each kind of call, the latest
ENOUGH = 8  # fewer say nothing yet
SHARE = 0.95  # the margin is at least what so many of them stayed below


@dataclass(frozen=True)
class NoiseSeen:
    """By kind of call (`statistics.kind_of_call`), absolute A/A log ratios of whole judgements, oldest first."""

    schema: int = 1
    seen: dict[str, tuple[float, ...]] = field(default_factory=dict)


def keep_noise(kind: str, log_ratio: float) -> None:
    """Add one judgement's A/A log ratio. The device's lock keeps writers apart."""
    if not math.isfinite(log_ratio):
        return
    known = _read().seen
    latest = (*known.get(kind, ()), abs(round(log_ratio, 6)))[-KEPT:]
    keep_measurement(NoiseSeen(seen={**known, kind: latest}), _path())


def noise_of_this_host() -> dict[str, float]:
    """By kind of call, the |log ratio| that 95% of the A/A measurements kept stayed below; only where 8 are known."""
    return {kind: _point(seen) for kind, seen in _read().seen.items() if len(seen) >= ENOUGH}


def _point(seen: tuple[float, ...]) -> float:
    return sorted(seen)[min(len(seen) - 1, math.ceil(SHARE * len(seen)) - 1)]


def _read() -> NoiseSeen:
    return read_measurement(NoiseSeen, _path()) or NoiseSeen()


def _path() -> Path:
    return measurements_directory() / "noise.json"
