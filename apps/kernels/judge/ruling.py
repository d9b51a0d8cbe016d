"""The rules a candidate may break: what its source shows, what ran, and what no machine of this speed could do."""

from __future__ import annotations

import importlib
import time
from collections import Counter

from apps.kernels.evaluation import EvaluationRequest, Rejection
from apps.kernels.jail import freeze as ice
from apps.kernels.judge import policy
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.observing import Observed
from apps.kernels.judge.session import Session
from apps.kernels.machine import HostReport
from apps.kernels.profile.sampling import PERIOD_NS, NoSampling, sampled

SAMPLED_SECONDS = 0.15  # of windows in one go; a sample a millisecond and thread
SAMPLING_WALL_SECONDS = 4.0
ENOUGH_SAMPLES = 120
USUAL_WINDOW_US = 90.0  # of a model that does nothing, on a quiet machine
FLOOR_SHARE = 0.85  # of the time that the compulsory bytes take at the largest bandwidth measured
DEPENDENCE_BLOCKS = 4


def static_rules(request: EvaluationRequest) -> tuple[Rejection, ...]:
    """What the candidate's text alone shows."""
    rules = importlib.import_module("apps.kernels.candidate")
    found: tuple[Rejection, ...] = rules.static_rules(request.candidate, request.language, request.policy)
    return found


def judge_what_ran(session: Session, findings: Findings, observed: Observed) -> None:
    """Sample program counters over calls like those that were timed, and hold them against the policy."""
    started = time.monotonic()
    session.tell("policy", "sampling what runs")
    try:
        evidence = _sample(session, findings, observed)
    except NoSampling as refused:
        findings.environment["program counters"] = f"not sampled: {refused}"
        return
    findings.environment["program counters"] = {
        "samples": evidence.samples,
        "objects": dict(sorted(evidence.objects.items(), key=lambda e: -e[1])[:8]),
        "calls": evidence.calls,
        "source": evidence.source,
        "enough": evidence.total >= policy.ENOUGH,
    }
    session.spend("policy", started)
    findings.rejections += policy.judge_evidence(evidence, session.request.policy)
    if findings.rejections:
        raise CandidateFailed("rejected", findings.rejections[0].detail, findings.rejections[0].rule)


def _sample(session: Session, findings: Findings, observed: Observed) -> policy.Evidence:
    """Windows until there are samples enough, a busy machine's patience allowing."""
    jailed = observed.runner.jailed
    samples: Counter[str] = Counter()
    objects: Counter[str] = Counter()
    calls, source = 0, ""
    before, started = ice.cpu_seconds(jailed.pid), time.monotonic()
    while True:
        observed.seconds = 0.0
        with sampled(jailed.pid) as counters:
            while observed.seconds < SAMPLED_SECONDS:
                calls += observed.window()
        source = counters.source
        kinds, names = policy.gather(counters.addresses, ice.mapped_objects(jailed.pid), jailed.work_inside)
        samples.update(kinds)
        objects.update(names)
        computing = samples.total() - samples["openmp"]
        if computing >= ENOUGH_SAMPLES or time.monotonic() - started > SAMPLING_WALL_SECONDS:
            break
    spent = ice.cpu_seconds(jailed.pid) - before
    slowness = min(5.0, max(1.0, (findings.timing.window_us or 0.0) / USUAL_WINDOW_US))
    a_sample = PERIOD_NS / 1e9 if source.startswith("perf") else spent / max(1, samples.total())
    return policy.Evidence(dict(samples), dict(objects), calls, a_sample, source, slowness)


def judge_floor(session: Session, findings: Findings, host: HostReport | None) -> None:
    """Reject what is faster than this machine can move the bytes that must be moved."""
    timing = findings.timing
    if host is None or timing.candidate is None or not host.ceilings.bandwidth:
        return
    started = time.monotonic()
    problem = session.oracle.problem
    shares = session.oracle.dependence(1, 2, DEPENDENCE_BLOCKS)
    read = sum(spec.numel * spec.item * share for spec, share in zip(problem.inputs, shares, strict=True))
    compulsory = read + problem.output_bytes
    bandwidth = _largest_bandwidth(host, int(compulsory))
    session.spend("floor", started)
    floor_ms = FLOOR_SHARE * compulsory / (bandwidth * 1e9) * 1000
    findings.environment["floor"] = {
        "compulsory_bytes": int(compulsory),
        "gbytes_per_s": bandwidth,
        "floor_ms": floor_ms,
        "dependence": shares,
    }
    if timing.candidate.median_ms < floor_ms:
        detail = (
            f"a call takes {timing.candidate.median_ms:.4g} ms; moving the {compulsory / 1e6:.3g} MB it must at the "
            f"{bandwidth:.3g} GB/s this machine reaches at most takes {floor_ms / FLOOR_SHARE:.4g} ms"
        )
        findings.rejections.append(Rejection("under the floor", "timing", detail))
        raise CandidateFailed("rejected", detail, "under the floor")


def _largest_bandwidth(host: HostReport, size: int) -> float:
    """The largest bandwidth measured here, over all mixes, for the nearest working set that is not larger.

    A smaller working set lies in a faster cache, so this errs towards letting through.
    """
    rows = host.ceilings.bandwidth
    fitting = [row for row in rows if row.working_set_bytes <= size]
    if not fitting:
        return max(row.gbytes_per_s for row in rows)
    nearest = max(row.working_set_bytes for row in fitting)
    return max(row.gbytes_per_s for row in fitting if row.working_set_bytes == nearest)
