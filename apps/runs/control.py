"""What people and limits say to the loop, read from the run's row at the loop's named points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from apps.agents.ports import Stopped
from apps.agents.words import Assignment, Orders
from apps.runs import connections
from apps.runs.beat import Hold
from apps.runs.models import Event, Hint, Run, RunState

N = TypeVar("N", int, float)

_PAUSED_LOOK_EVERY = 0.5  # seconds


class RunControl:
    """`apps.agents.ports.Control` over a run's row. `read` waits inside while the run is paused."""

    def __init__(self, hold: Hold, assignment: Assignment) -> None:
        self._hold = hold
        self._run_id = hold.claim.run_id
        self._assignment = assignment

    def read(self, point: str) -> Orders:
        """The orders as they stand now. Raises `ClaimLost` or `Leaving` where this worker must not go on."""
        while True:
            self._hold.check()
            try:
                run = Run.objects.get(pk=self._run_id)
                if run.state != RunState.PAUSED:
                    return self._orders(run)
            except connections.AWAY:
                connections.drop()
            self._hold.wait(_PAUSED_LOOK_EVERY)

    def _orders(self, run: Run) -> Orders:
        stop = stop_order(run)
        hints = Hint.objects.filter(run_id=run.pk, taken=False).values_list("text", flat=True)
        money = None if run.money_limit_usd is None else float(run.money_limit_usd)
        return Orders(
            end=stop.reason if stop else None,
            at_once=stop.at_once if stop else False,
            hints=tuple(hints),
            iterations=_changed(run.iterations, self._assignment.iterations),
            seconds=_changed(run.seconds_limit, self._assignment.seconds),
            money_usd=_changed(money, self._assignment.money_usd),
        )


def _changed(now: N | None, pinned: N | None) -> N | None:
    return now if now != pinned else None


@dataclass(frozen=True)
class StopOrder:
    """That a run is to end, why, and whether without judging its best in full."""

    reason: str
    at_once: bool


def stop_order(run: Run) -> StopOrder | None:
    """The order to stop that stands, or None."""
    if run.state != RunState.STOPPING:
        return None
    asked = list(Event.objects.filter(run_id=run.pk, kind="stop_asked").order_by("seq").values_list("data", flat=True))
    at_once = any(data.get("at_once") for data in asked)
    by = asked[-1].get("by") if asked else None
    return StopOrder(f"Stopped by {by}." if by else "Stopped.", at_once)


class Heed:
    """Orders as a call of a model hears them while it is on its way: asked several times a second, raises to end it.

    A pause lets the call come to its end; the run then waits at its next named point.
    """

    def __init__(self, hold: Hold) -> None:
        self._hold = hold

    def __call__(self) -> None:
        """Raise `Stopped`, `ClaimLost` or `Leaving` where the call is to end."""
        self._hold.check()
        try:
            order = stop_order(Run.objects.only("pk", "state").get(pk=self._hold.claim.run_id))
        except connections.AWAY:
            connections.drop()
            return
        if order is not None:
            raise Stopped(order.reason, at_once=order.at_once)
