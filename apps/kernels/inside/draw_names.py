"""Distributions of inputs, by name: `inside.draws` makes them, `strength` says which a problem is judged at."""

from __future__ import annotations

AS_GIVEN = "as given"  # as the problem's own `get_inputs` draws them
SMALL, LARGE, NORMAL, OFFSET = "small", "large", "normal", "offset"
HEAVY, SPARSE, FLAT, LOW_BITS = "heavy-tailed", "sparse", "all alike", "low bits"
# What lies at the edges of the promise: large enough for exp to overflow, and for squares; halves and ties.
FAR, HUGE, HALVES = "far out", "huge", "halves"
# As given but in a few elements, which no look at a few others tells.
MOTTLED, SPIKED = "mottled", "spiked"
LONE = "lone"  # as given but in three elements
ONE_SIDED, OTHER_SIDE = "one-sided", "the other side"  # all large, above zero or below it: gates stay open, or shut
INTEGERS = "other integers"  # for a problem with integers or booleans among its inputs
INFINITE, NAN, SUBNORMAL = "infinite", "not a number", "subnormal"  # beyond what is promised
# What finds savings that the usual ones let pass: drawn where a problem needs it.
NEARLY_ALIKE, STANDS_OUT = "nearly alike", "one stands out"
CANCELLING, CANCELLING_PAIRS, CANCELLING_ROWS = "cancelling", "cancelling pairs", "cancelling rows"
