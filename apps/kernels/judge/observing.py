"""A warm candidate in a process of its own that is watched from outside: for the policy's evidence and for the profile."""

from __future__ import annotations

from apps.kernels.judge.runner import Runner
from apps.kernels.judge.session import Session


class Observed:
    """The candidate under observation. It is called exactly as a timed one is."""

    def __init__(self, session: Session, runner: Runner, block: int, *, swept: bool = False) -> None:
        self.session = session
        self.runner = runner
        self.block = block
        self.swept = swept  # whether timed calls find the caches swept

    @property
    def pid(self) -> int:
        """Its process id, as the judge's process names it."""
        return self.runner.jailed.pid

    def window(self) -> None:
        """One window on new content, as in the timing; its runner counts calls and seconds."""
        order = self.runner.places.draw(self.block)
        contents = self.session.contents
        rows = [self.runner.place(place) for place in order]
        contents.lay([contents.new() for _ in order], self.runner.arena, rows)
        if self.swept:
            self.session.sweep()
        self.runner.call(order, keep=1, timeout=min(120.0, self.session.left))
