"""The live run: its head and budget, its timeline, and the pair of versions that the page compares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils import timezone

from apps.runs.models import Event, Run, RunState
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


@dataclass(frozen=True)
class Turn:
    """One version on the timeline."""

    measured: Measured
    is_best: bool
    slot: int  # from 1
    took: str
    note: str


@dataclass(frozen=True)
class Dropped:
    """A candidate that came to no version: its slot (from 1), and why; `copy_of` is the version it repeats."""

    slot: int
    reason: str
    copy_of: int | None


@dataclass(frozen=True)
class Card:
    """One card of the timeline: a version, or a candidate that came to none."""

    slot: int
    turn: Turn | None
    dropped: Dropped | None


@dataclass(frozen=True)
class Iteration:
    """One turn of the loop: its versions by slot, what came to none, and what they took together."""

    number: int
    turns: tuple[Turn, ...]
    dropped: tuple[Dropped, ...]
    is_current: bool
    seconds: str
    tokens: str
    cost: str
    doing: str = ""

    @property
    def cards(self) -> list[Card]:
        """Versions and what came to none, in the order of their slots."""
        cards = [Card(turn.slot, turn, None) for turn in self.turns]
        cards += [Card(dropped.slot, None, dropped) for dropped in self.dropped]
        return sorted(cards, key=lambda card: card.slot)


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
    if (left := seconds_left(run)) is not None:
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


def seconds_left(run: Run) -> float | None:
    """A guess at what is left: the mean of the iterations so far for those to come, never beyond the time limit.

    The loop may end earlier (nothing more to gain), so this is an upper guess; None until one iteration is over.
    """
    if run.state != RunState.RUNNING or run.started_at is None or run.iteration < 2:
        return None
    gone = (timezone.now() - run.started_at).total_seconds()
    left = gone / (run.iteration - 0.5) * (run.iterations - run.iteration + 0.5)
    return min(left, max(0.0, run.seconds_limit - gone)) if run.seconds_limit else left


def iterations(run: Run, versions: Sequence[Measured]) -> list[Iteration]:
    """The timeline: every iteration that began, with its versions and what its steps took."""
    usage, dropped = _usage(run), _dropped(run)
    last = max([run.iteration, *(one.version.iteration for one in versions)], default=0)
    made = []
    for number in range(0 if any(one.version.iteration == 0 for one in versions) else 1, last + 1):
        own = [one for one in versions if one.version.iteration == number]
        seconds, tokens, cost, unknown = usage.get(number, (0.0, 0, 0.0, False))
        current = run.is_live and number == run.iteration
        made.append(
            Iteration(
                number=number,
                turns=tuple(_turn(run, one) for one in sorted(own, key=_place)),
                dropped=tuple(dropped.get(number, ())),
                is_current=current,
                seconds=figures.duration(seconds) if seconds else "",
                tokens=f"{figures.count(tokens)} tok" if tokens else "",
                cost=("cost " if unknown and not cost else "") + figures.money(cost, unknown) if tokens else "",
                doing=run.doing if current else "",
            )
        )
    return made


def _place(one: Measured) -> tuple[int, int]:
    return one.version.slot, one.version.repair


def _turn(run: Run, one: Measured) -> Turn:
    evaluation, version = one.evaluation, one.version
    note = one.chip.word if one.ratio is None else ("repaired" if version.repair else "correct")
    if version.iteration == 0:
        note = f"{note} · by {version.author}"
    return Turn(
        measured=one,
        is_best=version.pk == (run.result_id or run.best_id),
        slot=version.slot + 1,
        took=figures.duration(evaluation.seconds) if evaluation and evaluation.seconds else "",
        note=note,
    )


def _dropped(run: Run) -> dict[int, list[Dropped]]:
    """What came to no version, by iteration."""
    found: dict[int, list[Dropped]] = {}
    for event in Event.objects.filter(run=run, kind="candidate_dropped", iteration__isnull=False).order_by("seq"):
        assert event.iteration is not None
        dropped = Dropped(event.data.get("slot", 0) + 1, str(event.data.get("reason", "")), event.data.get("copy_of"))
        found.setdefault(event.iteration, []).append(dropped)
    return found


def _usage(run: Run) -> dict[int, tuple[float, int, float, bool]]:
    """Seconds, tokens, money and whether a price was missing, by iteration."""
    totals: dict[int, tuple[float, int, float, bool]] = {}
    ended = Event.objects.filter(run=run, kind="step_ended", iteration__isnull=False)
    for number, usage in ended.values_list("iteration", "data__usage"):
        if not isinstance(usage, dict) or number is None:
            continue
        seconds, tokens, cost, unknown = totals.get(number, (0.0, 0, 0.0, False))
        mine = (usage.get("tokens_in") or 0) + (usage.get("tokens_out") or 0)
        totals[number] = (
            seconds + (usage.get("seconds") or 0.0),
            tokens + mine,
            cost + (usage.get("cost_usd") or 0.0),
            unknown or bool(mine and usage.get("cost_usd") is None),
        )
    return totals


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
