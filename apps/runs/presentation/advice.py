"""The advice card: bottleneck, evidence, change, what should move, and afterwards what did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Count, Max, Q

from apps.agents.words import Advice, Holding
from apps.kernels.plain import BadPlain, from_plain
from apps.kernels.profile.names import UNITS
from apps.runs.models import AdviceRow, Run
from apps.runs.presentation import figures
from apps.runs.presentation.metrics import label_of
from apps.runs.presentation.states import Chip

_HELD = {
    True: Chip("held", "✓", "good", False, "Every prediction that could be compared came out within its range"),
    False: Chip("did not hold", "✕", "bad", False, "A prediction came out beyond its range"),
    None: Chip("not to be told", "≈", "", False, "Nothing comparable was measured afterwards"),
}
SHOWN = 10  # cards of a page
_OPEN = Chip("being tried", "●", "run")
_UNTRIED = Chip(
    "not tried", "○", "", False, "No version followed it: its candidate came to none, or the run ended first"
)


@dataclass(frozen=True)
class Proof:
    """One figure the advice rests on, beside the threshold it crossed."""

    metric: str
    value: str
    threshold: str


@dataclass(frozen=True)
class Movement:
    """One metric that should move: as a ratio of before with its range, and as it came out. `held` is None while open."""

    metric: str
    before: str
    expected: str
    after: str
    held: bool | None


@dataclass(frozen=True)
class AdviceCard:
    """One advice as its card shows it."""

    number: int
    base: int
    bottleneck: str
    change: str
    reasoning: str
    evidence: tuple[Proof, ...]
    movements: tuple[Movement, ...]
    chip: Chip
    version: int | None


@dataclass(frozen=True)
class Advices:
    """What a run's page shows of its advices: a card, some earlier ones folded, and how all of them came out.

    `older` is where the ones before these begin, None where there are none; `is_newest`: the first card is the last advice.
    """

    cards: tuple[AdviceCard, ...]
    older: int | None
    is_newest: bool
    count: int
    held: int
    missed: int


def advices_of(run: Run, until: int | None = None) -> Advices:
    """The newest advice of a run with those before it, or those up to number `until`."""
    counts = {"all": Count("pk"), "good": Count("pk", filter=Q(held=True)), "bad": Count("pk", filter=Q(held=False))}
    told = run.advices.aggregate(**counts, newest=Max("number"))
    rows = run.advices.order_by("-number")
    if until is not None:
        rows = rows.filter(number__lte=until)
    found = list(rows[: SHOWN + 1])
    older = found[SHOWN].number if len(found) > SHOWN else None
    is_newest = not found or found[0].number == told["newest"]
    shown = tuple(cards(found[:SHOWN], over=not run.is_live))
    return Advices(shown, older, is_newest, told["all"], told["good"], told["bad"])


def cards(rows: Iterable[AdviceRow], *, over: bool = False) -> list[AdviceCard]:
    """The cards of a run's advices, newest first; rows of an older shape are left out. `over`: the run has ended."""
    made = []
    for row in rows:
        try:
            advice = from_plain(Advice, row.advice)
            holding = from_plain(Holding, row.holding) if row.holding else None
        except BadPlain:
            continue
        made.append(_card(advice, holding, _UNTRIED if over else _OPEN))
    return sorted(made, key=lambda card: -card.number)


def _card(advice: Advice, holding: Holding | None, open_chip: Chip) -> AdviceCard:
    return AdviceCard(
        number=advice.number,
        base=advice.base,
        bottleneck=label_of(advice.bottleneck),
        change=advice.change,
        reasoning=advice.reasoning,
        evidence=tuple(
            Proof(
                label_of(proof.metric),
                figures.with_unit(proof.value, proof.unit),
                f"{proof.relation} {figures.with_unit(proof.threshold, proof.unit)}",
            )
            for proof in advice.evidence
        ),
        movements=tuple(_movements(advice, holding)),
        chip=_HELD[holding.held] if holding else open_chip,
        version=holding.version if holding else None,
    )


def _movements(advice: Advice, holding: Holding | None) -> Iterable[Movement]:
    units = UNITS | {"time": "ms", "time_over_reference": "ratio"}
    units |= {proof.metric: proof.unit for proof in advice.evidence}
    happened = {one.metric: one for one in holding.happened} if holding else {}
    for expected in advice.expected:
        came = happened.get(expected.metric)
        unit = units.get(expected.metric, "")
        # After the fact the range stands in the metric's own unit, beside what was measured.
        told = (
            f"{figures.with_unit(expected.low * came.before, unit)} – {figures.with_unit(expected.high * came.before, unit)}"
            if came
            else f"{figures.ratio(expected.low)} – {figures.ratio(expected.high)} of now"
        )
        yield Movement(
            metric=label_of(expected.metric),
            before=figures.with_unit(came.before, unit) if came else "",
            expected=told,
            after=figures.with_unit(came.after, unit) if came else "",
            held=came.held if came else None,
        )
