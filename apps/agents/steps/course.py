"""A run on its way: who works on it, what it knows, what it may still spend, and how it comes to an end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from apps.agents import conductor
from apps.agents.budget import Limits, exceeded
from apps.agents.facts import HintTaken, StepBegan, StepEnded, StepKey
from apps.agents.memory import Memory
from apps.agents.ports import Clock, Coder, Conductor, Control, Evaluator, Journal, Say, Stopped, Verifier
from apps.agents.words import Agent, Assignment, Ending, History, Orders, Usage


@dataclass(frozen=True)
class Team:
    """Those a run works with (`apps.agents.ports`)."""

    coder: Coder
    conductor: Conductor
    evaluator: Evaluator
    journal: Journal
    control: Control
    clock: Clock
    verifier: Verifier | None = None  # reads failures; without one the judge's own words stand alone


class End(Exception):
    """The run comes to its end here, for this reason."""

    def __init__(self, reason: str, ending: Ending = Ending.FINISHED, *, at_once: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.ending = ending
        self.at_once = at_once


@dataclass(frozen=True)
class Interruption:
    """A step was stopped: what the journal keeps of it."""

    reason: str
    at_once: bool
    ending: Ending = Ending.STOPPED

    @classmethod
    def of(cls, stopped: Stopped) -> Interruption:
        """What is to be kept of the exception."""
        return cls(str(stopped), stopped.at_once, stopped.ending)

    def end(self) -> End:
        """What the loop makes of it."""
        return End(self.reason, self.ending, at_once=self.at_once)


@dataclass(frozen=True)
class Reading:
    """Orders, with the clock before and after they were read: in between the run was paused."""

    orders: Orders
    asked: float
    answered: float


class Course:
    """One run on its way. `limits` and `memory` are as the last step left them."""

    def __init__(self, assignment: Assignment, team: Team) -> None:
        self.assignment = assignment
        self.team = team
        self.memory = Memory([assignment, team.coder.name])
        self.limits = Limits(assignment.iterations, assignment.seconds, assignment.money_usd)
        self._started: float | None = None
        self._paused = 0.0

    @property
    def history(self) -> History:
        """What Coder and Conductor may see: with the profile off, no profile."""
        history = self.memory.history
        return history if self.assignment.profile else conductor.without_profile(history)

    def orders(self, point: str, iteration: int, slot: int = 0, attempt: int = 0) -> None:
        """Read what people and limits say at this point. Waits while paused; raises `End` where the run must end."""

        def read(say: Say) -> Reading:
            asked = self.team.clock.now()
            orders = self.team.control.read(point)
            return Reading(orders, asked, self.team.clock.now())

        key = StepKey(iteration, slot, f"orders-{point}", attempt)
        reading = self.team.journal.step(
            key,
            {"point": point},
            Reading,
            read,
            tell=lambda reading: [HintTaken(hint) for hint in reading.orders.hints],
        )
        self._heed(reading)

    def began(self, key: StepKey, agent: Agent, title: str) -> StepBegan:
        """The fact that opens a step."""
        return StepBegan(str(key), agent, key.iteration, title)

    def ended(self, key: StepKey, agent: Agent, summary: str, text: str = "", usage: Usage | None = None) -> StepEnded:
        """The fact that closes a step."""
        return StepEnded(str(key), agent, key.iteration, summary, text or summary, usage or Usage())

    def _heed(self, reading: Reading) -> None:
        orders = reading.orders
        self._started = reading.asked if self._started is None else self._started
        self._paused += reading.answered - reading.asked
        seconds = max(0.0, reading.answered - self._started - self._paused)
        self.memory.spent = replace(self.memory.spent, seconds=seconds)
        self.memory.hinted(orders.hints)
        self.limits = Limits(
            self.limits.iterations if orders.iterations is None else orders.iterations,
            self.limits.seconds if orders.seconds is None else orders.seconds,
            self.limits.money_usd if orders.money_usd is None else orders.money_usd,
        )
        if orders.end is not None:
            raise End(orders.end, Ending.STOPPED, at_once=orders.at_once)
        if over := exceeded(self.memory.spent, self.limits):
            raise End(over)
