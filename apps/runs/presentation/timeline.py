"""The timeline of a run: its iterations with their versions and what they took, a stretch of them at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import QuerySet

from apps.runs.models import Event, Run
from apps.runs.presentation import figures
from apps.runs.presentation.measured import Brief, Measured, briefs

STRETCH = 20  # iterations shown together


@dataclass(frozen=True)
class Turn:
    """One version on the timeline."""

    measured: Measured
    is_best: bool
    slot: int  # from 1
    took: str
    note: str
    detail: str  # why its verdict is what it is, in one line


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


@dataclass(frozen=True)
class Timeline:
    """A stretch of iterations. `earlier` and `later` are the last iteration of the stretches beside it, None at the ends;
    `is_newest`: it ends with the last iteration there is."""

    iterations: tuple[Iteration, ...]
    earlier: int | None
    later: int | None

    @property
    def is_newest(self) -> bool:
        """Whether nothing comes after it."""
        return self.later is None


def timeline(
    run: Run, versions: Sequence[Measured], until: int | None = None, looked_at: Measured | None = None
) -> Timeline:
    """The stretch that ends with iteration `until`: by default the newest, or one that holds the version looked at."""
    began = 0 if any(one.version.iteration == 0 for one in versions) else 1
    last = max([run.iteration, *(one.version.iteration for one in versions)], default=0)
    if until is None and looked_at is not None and looked_at.version.iteration <= last - STRETCH:
        until = looked_at.version.iteration + STRETCH // 2
    end = min(last, max(until if until is not None else last, began + STRETCH - 1))
    first = max(began, end - STRETCH + 1)
    return Timeline(
        tuple(_iterations(run, versions, first, end)),
        first - 1 if first > began else None,
        min(last, end + STRETCH) if end < last else None,
    )


def _iterations(run: Run, versions: Sequence[Measured], first: int, end: int) -> list[Iteration]:
    """Those of the stretch that began, with their versions and what their steps took."""
    by_number: dict[int, list[Measured]] = {}
    for one in versions:
        if first <= one.version.iteration <= end:
            by_number.setdefault(one.version.iteration, []).append(one)
    said = briefs(one for own in by_number.values() for one in own)
    events = Event.objects.filter(run=run, iteration__gte=first, iteration__lte=end)
    usage, dropped = _usage(events), _dropped(events)
    made = []
    for number in range(first, end + 1):
        seconds, tokens, cost, unknown = usage.get(number, (0.0, 0, 0.0, False))
        current = run.is_live and number == run.iteration
        made.append(
            Iteration(
                number=number,
                turns=tuple(_turn(run, one, said) for one in sorted(by_number.get(number, ()), key=_place)),
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


def _turn(run: Run, one: Measured, said: Mapping[int, Brief]) -> Turn:
    version = one.version
    brief = said.get(one.measurement.pk, Brief()) if one.measurement else Brief()
    note = one.chip.word if one.ratio is None else ("repaired" if version.repair else "correct")
    if version.iteration == 0:
        note = f"{note} · by {version.author}"
    return Turn(
        measured=one,
        is_best=version.pk == (run.result_id or run.best_id),
        slot=version.slot + 1,
        took=figures.duration(brief.seconds) if brief.seconds else "",
        note=note,
        detail=brief.detail,
    )


def _dropped(events: QuerySet[Event]) -> dict[int, list[Dropped]]:
    """What came to no version, by iteration."""
    found: dict[int, list[Dropped]] = {}
    for event in events.filter(kind="candidate_dropped").order_by("seq"):
        assert event.iteration is not None
        dropped = Dropped(event.data.get("slot", 0) + 1, str(event.data.get("reason", "")), event.data.get("copy_of"))
        found.setdefault(event.iteration, []).append(dropped)
    return found


def _usage(events: QuerySet[Event]) -> dict[int, tuple[float, int, float, bool]]:
    """Seconds, tokens, money and whether a price was missing, by iteration."""
    totals: dict[int, tuple[float, int, float, bool]] = {}
    ended = events.filter(kind="step_ended").order_by()
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
