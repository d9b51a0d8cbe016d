"""What each gain of a run has cost: a gain is a version that the run accepted as its best."""

from __future__ import annotations

from collections.abc import Iterable

from apps.agents.conductor import LEAST_LEAD
from apps.runs.models import Run, Version
from apps.runs.presentation import figures


def gains(ratios: Iterable[float | None]) -> int:
    """How many versions took the lead: faster than eager and than all before them, by more than a lead that says nothing.

    `ratios` are the versions' speed-ups in order, None where one failed.
    """
    best, count = 1.0, 0
    for ratio in ratios:
        if ratio is not None and ratio > best * (1 + LEAST_LEAD):
            best, count = ratio, count + 1
    return count


def cost_of_gains(run: Run, ratios: Iterable[float | None]) -> str:
    """`$0.14 for each of 3 gains`; empty where the run has spent nothing."""
    if not run.cost_usd and not run.cost_unknown:
        return ""
    count = gains(ratios)
    if not count:
        return "no gain yet" if run.is_live else "for no gain"
    about = "≈ " if run.cost_estimated else ""
    each = figures.money(run.cost_usd / count, run.cost_unknown)
    return f"{about}{each} for " + ("its one gain" if count == 1 else f"each of {count} gains")


def cost_of_gains_of(run: Run) -> str:
    """The same of one run, whose versions' speed-ups are looked up where it has spent anything."""
    if not run.cost_usd and not run.cost_unknown:
        return ""
    versions = Version.objects.filter(run=run).order_by("number")
    return cost_of_gains(run, versions.values_list("measurement__speedup", flat=True))
