"""What a run has spent, and whether that is more than it may.

Seconds are the wall's since the run began, less the time it was paused. They are read from the journal, so a resumed
run decides as the first one did; the time between a worker's death and its successor counts. A limit ends the writing:
the best is judged in full all the same, and that comes on top.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from apps.agents.words import Usage


@dataclass(frozen=True)
class Limits:
    """How long and how dear a run may get; None is no limit."""

    iterations: int
    seconds: float | None = None
    money_usd: float | None = None


@dataclass(frozen=True)
class Spent:
    """What a run has taken so far. `unpriced` counts calls whose price is unknown: they are not in `cost_usd`."""

    seconds: float = 0.0
    cost_usd: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0
    unpriced: int = 0

    def plus(self, usage: Usage) -> Spent:
        """With one more call of an agent. A call without a model costs nothing."""
        unpriced = usage.model is not None and usage.cost_usd is None
        return replace(
            self,
            cost_usd=self.cost_usd + (usage.cost_usd or 0.0),
            tokens_in=self.tokens_in + (usage.tokens_in or 0),
            tokens_out=self.tokens_out + (usage.tokens_out or 0),
            unpriced=self.unpriced + unpriced,
        )


def exceeded(spent: Spent, limits: Limits) -> str | None:
    """Why the run may not go on, for a person to read; None while it may."""
    if limits.seconds is not None and spent.seconds >= limits.seconds:
        return f"The time limit of {limits.seconds:g} s is reached."
    if limits.money_usd is not None and 0 < spent.cost_usd >= limits.money_usd:
        return f"The money limit of {limits.money_usd:g} USD is reached."
    return None
