"""A version with the evaluation it is shown by, read once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from apps.kernels.evaluation import Evaluation, Tier
from apps.kernels.plain import BadPlain, from_plain
from apps.runs.models import Measurement, Version
from apps.runs.presentation import figures
from apps.runs.presentation.states import Chip, outcome_chip, verdict_chip


@dataclass(frozen=True)
class Measured:
    """One version and its latest measurement; `evaluation` is None before the first, or where it can't be read."""

    version: Version
    measurement: Measurement | None
    evaluation: Evaluation | None

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
    chosen = measurement or version.measurement
    return Measured(version, chosen, read(chosen))


def all_measured(versions: Iterable[Version]) -> list[Measured]:
    """Each version by its latest measurement."""
    return [measured(version) for version in versions]
