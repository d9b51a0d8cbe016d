"""An evaluation as a row, and a version with its measurement as events and REST tell it."""

from __future__ import annotations

from apps.hosts.models import Job
from apps.kernels.evaluation import Evaluation, Verdict
from apps.kernels.plain import Plain, to_plain
from apps.runs.models import Measurement, Purpose, Version


def measurement_of(
    version: Version, device_id: int, purpose: Purpose, evaluation: Evaluation, job: Job | None
) -> Measurement:
    """The row of one evaluation, not saved yet. A speed-up is kept for correct versions only."""
    ratio = evaluation.timing.speedup if evaluation.verdict is Verdict.CORRECT else None
    return Measurement(
        version=version,
        device_id=device_id,
        job=job,
        purpose=purpose,
        tier=evaluation.tier.value,
        verdict=evaluation.verdict.value,
        outcome=evaluation.timing.outcome.value if evaluation.timing.outcome else "",
        speedup=ratio.median if ratio else None,
        speedup_low=ratio.ci95[0] if ratio else None,
        speedup_high=ratio.ci95[1] if ratio else None,
        evaluation=to_plain(evaluation),
    )


def version_data(version: Version, measurement: Measurement, parent: int | None) -> dict[str, Plain]:
    """VERSION of docs/api.md, but for `is_best`."""
    timing = measurement.evaluation["timing"]
    candidate, reference = timing["candidate"], timing["reference"]
    return {
        "number": version.number,
        "iteration": version.iteration,
        "slot": version.slot,
        "repair": version.repair,
        "parent": parent,
        "author": version.author,
        "advice": version.advice,
        "summary": version.summary,
        "verdict": measurement.verdict,
        "outcome": measurement.outcome or None,
        "tier": measurement.tier,
        "speedup": measurement.speedup,
        "speedup_low": measurement.speedup_low,
        "speedup_high": measurement.speedup_high,
        "candidate_ms": candidate["median_ms"] if candidate else None,
        "reference_ms": reference["median_ms"] if reference else None,
        "detail": measurement.evaluation["detail"],
    }
