"""What one timing stage has found so far, and how it shares the seconds that are left."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass, field

from apps.kernels.judge import statistics
from apps.kernels.judge.timing import Group

GROUPS = 8
MOST_GROUPS = 16  # where processes differ by more than their pairs do
FEW_GROUPS = 3  # whose scatter says something
PAIRS = 30  # of a group, and of the first one, which shows how many the others want
MOST_PAIRS = 120
FEWEST_PAIRS = 5
CHECKED_WHOLE = 2  # calls of a group that are compared in every element, and others of which pages are
CHECKED_PAGES = 2


@dataclass
class Race:
    """The groups that were timed, and what an empty model's window takes."""

    groups: list[Group] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    empty_us: float | None = None
    block: int = 1
    resized: bool = False  # whether that was chosen anew, by what calls take where they are timed
    checking: float = 0.0  # seconds that checking a group's calls takes
    aside: float = 0.0  # seconds of a group for windows that are stopped or watched
    checked: tuple[int, int] = (CHECKED_WHOLE, CHECKED_PAGES)  # calls of the next group: whole, and by pages
    count: int = GROUPS
    overhead: float = 0.0  # seconds that a group takes besides its rounds
    a_round: float = 0.0  # seconds
    coin: int = field(default_factory=lambda: secrets.randbelow(2))  # who is started first in the first group
    retaken: list[float] = field(default_factory=list)  # what others took of the CPUs while the dropped groups ran

    def note(self, text: str | None) -> None:
        """Something to say with the times, once."""
        self.notes += [text] if text and text not in self.notes else []

    @property
    def wide(self) -> bool:
        """Whether the groups so far scatter too much for a decision, and show no difference that is beyond doubt."""
        return statistics.wide([group.estimate() for group in self.groups])

    def groups_planned(self, left: float) -> int:
        """How many groups to share `left` seconds among, those done included: 8 to 16, by what one has taken so far."""
        done = len(self.groups)
        if not done or not self.wide:
            return max(GROUPS, done)
        pairs = sum(group.rounds for group in self.groups)
        plan = statistics.Plan(left, self.overhead, self.a_round, FEWEST_PAIRS, MOST_PAIRS)
        return plan.groups(done, pairs, GROUPS, MOST_GROUPS)

    def remaining(self, left: float, *, full: bool) -> int:
        """Groups to share `left` seconds among, the one that begins now included: one, where there is time for none."""
        return max(1, (self.groups_planned(left) if full else self.count) - len(self.groups))

    @property
    def most_pairs(self) -> int:
        """Pairs that the next group may want, by what the first one shows, or the scatter of three and more."""
        if not self.groups:
            return PAIRS
        if len(self.groups) >= FEW_GROUPS and self.wide:
            return MOST_PAIRS
        return max(PAIRS, min(MOST_PAIRS, math.ceil(statistics.pairs_wanted(self.groups[0].log_ratios(), GROUPS))))
