"""What an export says of a kernel: gathered once from its rows, checked against its content hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from django.utils.text import slugify

from apps.kernels.plain import Plain
from apps.people.refusals import Refused
from apps.reviews.models import AcceptedKernel
from apps.runs.presentation import figures


class ContentChanged(Refused):
    """The source in the database is not the one that was accepted, so it is handed out to nobody."""


@dataclass(frozen=True)
class Contents:
    """A kernel and what is said of it. `stem` is safe as a file's name whatever the problem is called."""

    stem: str
    title: str
    source: str
    digest: str
    problem_source: str
    overrides: dict[str, int | float | bool | str]
    language: str
    device: str
    device_model: str
    speedup: str
    tolerance: float | None
    accepted_by: str
    accepted_at: datetime
    address: str
    environment: dict[str, str] = field(default_factory=dict)
    evaluation: Plain = None


def stem_of(kernel: AcceptedKernel) -> str:
    """What its files are called: a name that Python can import, whatever the problem is called."""
    stem = slugify(kernel.problem.slug)[:60].replace("-", "_") or "problem"
    return f"{'' if stem[0].isalpha() else 'k_'}{stem}_{slugify(kernel.language)}_{kernel.digest[:8]}"


def contents_of(kernel: AcceptedKernel, address: str) -> Contents:
    """The kernel's contents; `address` is where its page is. Raises `ContentChanged`."""
    version, evaluation = kernel.version, kernel.measurement.evaluation
    if hashlib.sha256(version.source.encode()).hexdigest() != kernel.digest:
        raise ContentChanged(
            f"The source kept for {kernel} is not the one that was accepted (content {kernel.digest[:12]}), so it is not "
            "handed out. Put a copy of the database back, or revoke the kernel."
        )
    row = kernel.measurement
    return Contents(
        stem=stem_of(kernel),
        title=kernel.problem.title,
        source=version.source,
        digest=kernel.digest,
        problem_source=kernel.problem.source,
        overrides=kernel.sizing.overrides,
        language=kernel.language,
        device=str(kernel.device),
        device_model=kernel.device.model,
        speedup=figures.speedup(row.speedup, row.speedup_low, row.speedup_high),
        tolerance=_tolerance(evaluation),
        accepted_by=str(kernel.by),
        accepted_at=kernel.at,
        address=address,
        environment=kernel.environment,
        evaluation=evaluation,
    )


def _tolerance(evaluation: Plain) -> float | None:
    found = (evaluation.get("correctness") or {}).get("tolerance")
    return float(found) if isinstance(found, int | float) and found > 0 else None
