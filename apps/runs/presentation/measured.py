"""A version with the evaluation it is shown by, read once, and only where something asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from django.db.models import QuerySet

from apps.kernels.evaluation import Evaluation, Tier
from apps.kernels.plain import BadPlain, from_plain
from apps.runs.models import Measurement, Version
from apps.runs.presentation import figures
from apps.runs.presentation.states import Chip, outcome_chip, verdict_chip


@dataclass(frozen=True)
class Measured:
    """One version and its latest measurement."""

    version: Version
    measurement: Measurement | None

    @cached_property
    def evaluation(self) -> Evaluation | None:
        """All that was found out; None before the first measurement, or where it can't be read."""
        return read(self.measurement)

    @property
    def name(self) -> str:
        """`v4`."""
        return f"v{self.version.number}"

    @property
    def ratio(self) -> float | None:
        """Speed-up over eager, where correct and timed."""
        return self.measurement.speedup if self.measurement else None

    @property
    def speedup(self) -> str:
        """`4.52×`."""
        return figures.ratio(self.ratio)

    @property
    def interval(self) -> str:
        """`[4.41 – 4.63]` at 95 %."""
        return figures.interval(self.measurement.speedup_low, self.measurement.speedup_high) if self.measurement else ""

    @property
    def chip(self) -> Chip:
        """The judge's verdict."""
        return verdict_chip(self.measurement.verdict if self.measurement else None)

    @property
    def outcome(self) -> Chip | None:
        """The full tier's word, if it was judged in full."""
        return outcome_chip(self.measurement.outcome if self.measurement else None)

    @property
    def tier(self) -> str:
        """How much was measured: `quick` or `full`."""
        return self.measurement.tier if self.measurement else ""

    @property
    def is_full(self) -> bool:
        """Whether all statistics were gathered."""
        return self.tier == Tier.FULL.value

    @property
    def detail(self) -> str:
        """Why the verdict is what it is, in one line."""
        if self.evaluation is None:
            return ""
        if self.evaluation.rejections:
            first = self.evaluation.rejections[0]
            return f"{first.rule} ({first.where}): {first.detail}"
        return self.evaluation.detail


def read(measurement: Measurement | None) -> Evaluation | None:
    """The evaluation of a measurement; None where there is none or an older PRAGMA wrote it in another shape."""
    if measurement is None:
        return None
    try:
        return from_plain(Evaluation, measurement.evaluation)
    except BadPlain:
        return None


def measured(version: Version, measurement: Measurement | None = None) -> Measured:
    """A version by its latest measurement, or by the one given."""
    return Measured(version, measurement or version.measurement)


def all_measured(versions: QuerySet[Version]) -> list[Measured]:
    """Each version by its latest measurement, in one query that leaves the large columns (source, plan, evaluation) where
    they are: a run may have hundreds of versions, and a page looks into a few of them."""
    lean = versions.select_related("measurement").defer("source", "plan", "measurement__evaluation")
    return [measured(version) for version in lean]


def load(shown: Iterable[Measured | None]) -> None:
    """Read the evaluations of those that `all_measured` left where they were, in one query."""
    rows = (one.measurement for one in shown if one is not None)
    missing = {row.pk: row for row in rows if row is not None and "evaluation" in row.get_deferred_fields()}
    if missing:
        for key, evaluation in Measurement.objects.filter(pk__in=missing).values_list("pk", "evaluation"):
            missing[key].evaluation = evaluation


@dataclass(frozen=True)
class Brief:
    """What a line about a measurement says of its evaluation: how long it took, and why it came out so."""

    seconds: float | None = None
    detail: str = ""


def briefs(shown: Iterable[Measured]) -> dict[int, Brief]:
    """The briefs of those measurements by key, in one query, without reading the evaluations."""
    keys = [one.measurement.pk for one in shown if one.measurement]
    parts = ("pk", "evaluation__seconds", "evaluation__detail", "evaluation__rejections__0")
    found = Measurement.objects.filter(pk__in=keys).order_by().values_list(*parts)
    return {key: Brief(_seconds(seconds), _why(detail, first)) for key, seconds, detail, first in found}


def _seconds(found: object) -> float | None:
    return float(found) if isinstance(found, int | float) else None


def _why(detail: object, rejection: object) -> str:
    if isinstance(rejection, dict):
        return f"{rejection.get('rule')} ({rejection.get('where')}): {rejection.get('detail')}"
    return detail if isinstance(detail, str) else ""
