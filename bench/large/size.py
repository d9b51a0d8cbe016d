"""How large the team's database is to be."""

from __future__ import annotations

from dataclasses import dataclass

FULL = 10_000


@dataclass(frozen=True)
class Size:
    """Runs in all, events of the run that has most of them, versions of the one that has most; the rest goes with `runs`."""

    runs: int = FULL
    events: int = 100_000
    versions: int = 500

    def share(self, whole: int, least: int = 2) -> int:
        """What a thing that numbers `whole` beside 10,000 runs numbers here."""
        return max(least, round(whole * self.runs / FULL))
