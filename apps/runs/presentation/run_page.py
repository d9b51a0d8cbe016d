"""The live run: its head and budget, and the pair of versions that the page compares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from apps.runs.models import Run, RunState
from apps.runs.presentation import figures, gains
from apps.runs.presentation.measured import Measured
from apps.runs.presentation.runs_table import spend, took
from apps.runs.presentation.states import Chip, outcome_chip, run_chip


@dataclass(frozen=True)
class Budget:
    """One thing that runs out: words, and the part that is gone (None where there is no limit)."""

    name: str
    words: str
    part: float | None


@dataclass(frozen=True)
class Head:
    """What stands on top of a run's page."""

    chip: Chip
    more: str
    speedup: str
    interval: str
    beside: str
    outcome: Chip | None
    budgets: tuple[Budget, ...]
    reason: str
    started: float | None  # Unix seconds while the clock should tick, else None
    can_pause: bool
    can_resume: bool
    can_stop: bool
    can_stop_at_once: bool
    can_steer: bool


def head(run: Run) -> Head:
    """The head of a run as its row says."""
    live = RunState(run.state) in (RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)
    more = f"iteration {run.iteration} of {run.iterations}" if run.is_live and run.iteration else ""
    if run.is_live and run.doing:
        more = f"{more} · {run.doing}" if more else run.doing
    return Head(
        chip=run_chip(run),
        more=more,
        speedup=figures.ratio(run.speedup),
        interval=figures.interval(run.speedup_low, run.speedup_high),
        beside=_beside(run),
        outcome=outcome_chip(run.outcome),
        budgets=tuple(_budgets(run)),
        reason=run.reason,
        started=run.started_at.timestamp() if live and run.started_at else None,
        can_pause=run.state == RunState.RUNNING,
        can_resume=run.state == RunState.PAUSED,
        can_stop=run.state in (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED),
        can_stop_at_once=run.state == RunState.STOPPING,
        can_steer=run.state in (RunState.QUEUED, RunState.RUNNING, RunState.PAUSED),
    )


def _beside(run: Run) -> str:
    """What the speed-up is over, torch.compile included where it was timed."""
    if not run.speedup:
        return "over eager"
    if not run.is_live and run.result_id is None:
        return "the reference stays; the best attempt is below" if run.best_id else "the reference stays"
    if not run.compiled_speedup:
        return "over eager"
    return f"over eager · {figures.ratio(run.speedup / run.compiled_speedup)} over torch.compile"


def _budgets(run: Run) -> Sequence[Budget]:
    done = min(run.iteration, run.iterations)
    budgets = [Budget("Iterations", f"{done} / {run.iterations}", done / run.iterations if run.iterations else None)]
    gone = took(run)
    limit = run.seconds_limit
    words = figures.duration(gone) if gone is not None else "not begun"
    if limit:
        words += f" / {figures.duration(limit)}"
    if run.is_live and limit and gone is not None and gone >= limit:
        words += " · limit reached: it ends once its best is judged in full"
    elif (left := seconds_left(run)) is not None:
        words += f" · about {figures.duration(left)} left"
    budgets.append(Budget("Time", words, min(1.0, gone / limit) if limit and gone is not None else None))
    cost = "none (built-in)" if run.coder == "builtin" and not run.cost_usd else spend(run)
    part = None
    if run.money_limit_usd:
        cost += f" of {figures.money(run.money_limit_usd)}"
        part = min(1.0, float(run.cost_usd / run.money_limit_usd))
    if each := gains.cost_of_gains_of(run):
        cost += f" · {each}"
    budgets.append(Budget("Cost", cost, part))
    if run.tokens_limit:
        taken = run.tokens_in + run.tokens_out
        words = f"{figures.count(taken)} / {figures.count(run.tokens_limit)}"
        budgets.append(Budget("Tokens", words, min(1.0, taken / run.tokens_limit)))
    return budgets


@dataclass(frozen=True)
class TypedLimits:
    """A run's limits as a form's fields hold them; empty where there is none."""

    iterations: str
    minutes: str
    money: str
    tokens: str


def limits_as_typed(run: Run) -> TypedLimits:
    """The limits that a person may change while the run is live."""
    return TypedLimits(
        str(run.iterations),
        f"{run.seconds_limit / 60:.6g}" if run.seconds_limit else "",
        f"{run.money_limit_usd.normalize():f}" if run.money_limit_usd is not None else "",
        str(run.tokens_limit) if run.tokens_limit else "",
    )


def seconds_left(run: Run) -> float | None:
    """A guess at what is left: the mean of the iterations so far for those to come, never beyond the time limit.

    The loop may end earlier (nothing more to gain), so this is an upper guess; None until one iteration is over.
    """
    if run.state != RunState.RUNNING or run.started_at is None or run.iteration < 2:
        return None
    gone = (timezone.now() - run.started_at).total_seconds()
    left = gone / (run.iteration - 0.5) * (run.iterations - run.iteration + 0.5)
    return min(left, max(0.0, run.seconds_limit - gone)) if run.seconds_limit else left


@dataclass(frozen=True)
class Pair:
    """The version looked at and the one it is held against (None: the problem's reference)."""

    current: Measured
    against: Measured | None


def pair(run: Run, versions: Sequence[Measured], current: str = "", against: str = "") -> Pair | None:
    """The pair an address asks for; by default the newest version against its parent, or against the best.

    `current` and `against` are version numbers; `against` may also be parent, best or reference.
    """
    if not versions:
        return None
    by_number = {str(one.version.number): one for one in versions}
    shown = by_number.get(current, versions[-1])
    parent = next((one for one in versions if one.version.pk == shown.version.parent_id), None)
    best = next((one for one in versions if one.version.pk == run.best_id and one is not shown), None)
    choices = {"parent": parent, "best": best, "reference": None}
    if against in choices:
        return Pair(shown, choices[against])
    return Pair(shown, by_number.get(against, parent or best))
