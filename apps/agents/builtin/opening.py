"""The schedule of a first version: plain loops, and what the loops themselves show to cost a great share of the time.

A call of the mathematics library in a loop, a fold that no compiler makes vectors of, a fold that leaves all but one core
idle: no measurement is needed to see these, and a version spent on measuring them would tell nothing new. All else is
left to what the profile shows.
"""

from __future__ import annotations

from apps.agents.builtin.moves import MOVES
from apps.agents.builtin.schedule import Schedule
from apps.agents.builtin.search import Workshop

PLAIN = Schedule()
SEEN_AT_ONCE = frozenset({"in-line-functions", "vectors", "split-fold", "accumulators", "larger-tile"})
# Of the predicted time that such a move has to leave at most; the cost model is good for some tens of per cent.
PLAINLY_BETTER = 0.8


def opening(shop: Workshop) -> tuple[Schedule, tuple[str, ...]]:
    """The schedule to begin with, and the names of the moves that led to it from plain loops."""
    schedule, names = PLAIN, []
    for move in MOVES:
        after = move.edit(schedule, shop.host) if move.name in SEEN_AT_ONCE else None
        if after is not None and _loops(shop, after) <= PLAINLY_BETTER * _loops(shop, schedule):
            schedule = after
            names.append(move.name)
    return schedule, tuple(names)


def _loops(shop: Workshop, schedule: Schedule) -> float:
    """Seconds of the kernel's own work."""
    cost = shop.cost(schedule)
    return cost.seconds - cost.library
