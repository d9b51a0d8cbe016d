"""Handing the warm candidate to the profiler. A profile never changes a verdict: what can't be had, it says why not."""

from __future__ import annotations

import importlib
import time

from apps.kernels.evaluation import Profile, Unavailable
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.observing import Observed
from apps.kernels.judge.session import Session
from apps.kernels.machine import HostReport


def profile(session: Session, findings: Findings, observed: Observed, host: HostReport | None) -> None:
    """Fill in the profile, if one was asked for."""
    if not session.request.profile:
        return
    started = time.monotonic()
    session.tell("profile", "profiling the candidate")
    try:
        profiler = importlib.import_module("apps.kernels.profile")
        findings.profile = profiler.profile_candidate(observed, host=host)
    except (CandidateFailed, OSError, ImportError, AttributeError, TypeError) as problem:
        why = Unavailable("profile", f"it could not be taken: {type(problem).__name__}: {problem}")
        findings.profile = Profile(unavailable=(why,))
    session.spend("profile", started)
