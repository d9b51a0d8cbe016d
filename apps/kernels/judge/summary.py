"""Times, speed-up, outcome and what is to be said with them, from the groups that were timed."""

from __future__ import annotations

import math
import statistics as plain_statistics
from collections.abc import Sequence

from apps.kernels.evaluation import Outcome, SpeedUp, Time, Timing
from apps.kernels.judge import statistics
from apps.kernels.judge.bystanders import DISTURBED
from apps.kernels.judge.race import Race
from apps.kernels.judge.timing import Group


def summarise(found: Race, noise: dict[str, float], *, full: bool) -> Timing:
    """Times, speed-up and outcome from the groups."""
    groups = found.groups
    reference = _time(groups, "reference")
    candidate = _time(groups, "candidate")
    # two kinds of call where they differ much; a small difference must not lie under what is noise for either
    margin = max(statistics.margin(noise, (time.median_ms if time else 0.0) / 1000) for time in (reference, candidate))
    speedup = _speedup(groups, "reference", margin, full=full)
    outcome = None
    if full and speedup and speedup.decision_interval:
        low, high = (math.log(bound) for bound in speedup.decision_interval)
        outcome = Outcome(statistics.outcome((low, high), margin))
    with_compiled = [group for group in groups if "compiled" in group.times]
    return Timing(
        reference=reference,
        compiled_reference=_time(with_compiled, "compiled"),
        candidate=candidate,
        speedup=speedup,
        speedup_over_compiled=_speedup(with_compiled, "compiled", margin, full=full),
        outcome=outcome,
        window_us=round(found.empty_us, 1) if found.empty_us else None,
        notes=(*found.notes, *_notes(found)),
        samples=tuple(group.samples(index) for index, group in enumerate(groups)),
    )


def _time(groups: Sequence[Group], name: str) -> Time | None:
    medians = [statistics.median(group.times[name]) / 1000 for group in groups if group.times.get(name)]
    if not medians:
        return None
    every = [us / 1000 for group in groups for us in group.times.get(name, ())]
    middle = statistics.median(every)
    if len(medians) >= 3:
        low, high = statistics.interval_over_groups([math.log(m) for m in medians], statistics.SHOWN_LEVEL)
        low, high = math.exp(low), math.exp(high)
    else:
        low, high = statistics.interval_of_median(every, statistics.SHOWN_LEVEL)
    return Time(_digits(middle), (_digits(min(low, middle)), _digits(max(high, middle))))


def _speedup(groups: Sequence[Group], over: str, margin: float, *, full: bool) -> SpeedUp | None:
    if not groups or any(not group.times.get(over) for group in groups):
        return None
    estimates = [group.estimate(over) for group in groups]
    middle = plain_statistics.fmean(estimates)
    if len(estimates) >= 3:
        shown = statistics.interval_over_groups(estimates, statistics.SHOWN_LEVEL)
    else:
        ratios = [r for g in groups for r in g.log_ratios(over)]
        shown = statistics.interval_of_median(ratios, statistics.SHOWN_LEVEL)
    decision = statistics.interval_over_groups(estimates, statistics.DECISION_LEVEL) if full else None
    twice = [g for g in groups if "second reference" in g.times and over == "reference"]
    aa = plain_statistics.fmean([g.estimate("second reference", "reference") for g in twice]) if twice else None
    usable = decision is not None and all(map(math.isfinite, decision))
    return SpeedUp(
        median=_digits(math.exp(middle)),
        ci95=(_digits(math.exp(shown[0])), _digits(math.exp(shown[1]))),
        decision_interval=(_digits(math.exp(decision[0])), _digits(math.exp(decision[1])))
        if usable and decision
        else None,
        level=statistics.DECISION_LEVEL if full else None,
        margin=margin if full else None,
        aa=_digits(math.exp(aa)) if aa is not None else None,
    )


def _notes(found: Race) -> list[str]:
    notes = []
    references = [us for group in found.groups for us in group.times.get("reference", ())]
    if len(references) >= 8:
        deciles = plain_statistics.quantiles(references, n=10)
        if deciles[8] > 2 * deciles[4]:
            notes.append("the machine was busy: a tenth of the reference's calls took more than twice its median")
    notes += _notes_on_others(found)
    if found.block > 1:
        notes.append(f"{found.block} calls a window, each on its own inputs")
    candidates = [us for group in found.groups for us in group.times.get("candidate", ())]
    if candidates and found.empty_us and statistics.median(candidates) * found.block < 3 * found.empty_us:
        notes.append("a window holds little more than its own cost; the true ratio is further from 1 than shown")
    return notes


def _notes_on_others(found: Race) -> list[str]:
    notes = []
    if found.retaken:
        notes.append(
            f"{len(found.retaken)} groups of processes were dropped and taken again: other programs took up to "
            f"{max(found.retaken):.0%} of this machine's CPUs"
        )
    disturbed = [group.others for group in found.groups if group.others > DISTURBED]
    if disturbed:
        notes.append(
            f"other programs took up to {max(disturbed):.0%} of this machine's CPUs during {len(disturbed)} of "
            f"{len(found.groups)} groups; the intervals are the wider for it"
        )
    return notes


def _digits(value: float) -> float:
    return float(f"{value:.6g}")
