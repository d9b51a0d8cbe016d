"""What an export says of a kernel: gathered once from its rows, checked against its content hash."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime

from django.utils.text import slugify

from apps.kernels.plain import Plain
from apps.reviews.models import AcceptedKernel
from apps.runs.presentation import figures


class ContentChanged(Exception):
    """The source in the database is not the one that was accepted."""


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


def contents_of(kernel: AcceptedKernel, address: str) -> Contents:
    """The kernel's contents; `address` is where its page is. Raises `ContentChanged`."""
    version, evaluation = kernel.version, kernel.measurement.evaluation
    if hashlib.sha256(version.source.encode()).hexdigest() != kernel.digest:
        raise ContentChanged(f"The source of {kernel} is not the one that was accepted ({kernel.digest[:12]}).")
    row = kernel.measurement
    stem = slugify(kernel.problem.slug)[:60].replace("-", "_") or "problem"
    return Contents(
        stem=f"{stem}_{slugify(kernel.language)}_{kernel.digest[:8]}",
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
