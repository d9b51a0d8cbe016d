"""The rules a candidate may break: what its source shows, and what no machine of this speed could do."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from apps.kernels.evaluation import ALGEBRA, EvaluationRequest, Rejection, Robustness
from apps.kernels.host.roofs import largest_bandwidth
from apps.kernels.judge.checking import check_again
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.oracle import OpenProblem
from apps.kernels.judge.session import Session
from apps.kernels.machine import HostReport
from apps.kernels.plain import to_plain

NO_FLOOR = "not checked: what this machine's memory reaches has not been measured yet"
FLOOR_SHARE = 0.85  # of the time that the compulsory bytes take at the largest bandwidth measured


def static_rules(request: EvaluationRequest) -> tuple[Rejection, ...]:
    """What the candidate's text alone shows."""
    rules = importlib.import_module("apps.kernels.candidate")
    found: tuple[Rejection, ...] = rules.static_rules(request.candidate, request.language, request.policy)
    return found


def judge_floor(session: Session, findings: Findings, host: HostReport | None) -> None:
    """Reject what is faster than this machine can move the bytes that must be moved; where that is not known, say so."""
    candidate = findings.timing.candidate
    if candidate is None:
        return
    floor = floor_of(session.oracle.problem, findings.strength.dependence, host) if host is not None else None
    if floor is None:
        findings.environment["floor"] = NO_FLOOR
        return
    findings.environment["floor"] = to_plain(floor)
    if candidate.median_ms < floor.floor_ms:
        detail = (
            f"a call takes {candidate.median_ms:.4g} ms; moving the {floor.compulsory_bytes / 1e6:.3g} MB it must at the "
            f"{floor.gbytes_per_s:.3g} GB/s this machine reaches at most takes {floor.floor_ms / FLOOR_SHARE:.4g} ms"
        )
        raise CandidateFailed("rejected", detail, "under the floor", "timing")


@dataclass(frozen=True)
class Floor:
    """The least a call can take here: what it must move, how fast that can go, the time allowed for it.

    `dependence` is the share of each input's elements on which the output is seen to depend.
    """

    compulsory_bytes: int
    gbytes_per_s: float
    floor_ms: float
    dependence: tuple[float, ...]


def floor_of(problem: OpenProblem, dependence: Sequence[float], host: HostReport) -> Floor | None:
    """0.85 of the time that outputs and the input elements that matter take at the largest bandwidth measured here.

    None where no bandwidth was measured. Inputs of which nothing is known count nothing. An output that is a view of an input
    is not written, and takes no reading of it either; of outputs that share memory the largest is written.
    """
    known = [*dependence, *[0.0] * len(problem.inputs)][: len(problem.inputs)]
    if any(problem.views):
        known = [0.0] * len(problem.inputs)
    read = sum(spec.least_bytes * share for spec, share in zip(problem.inputs, known, strict=True))
    made = [spec.least_bytes for spec, view in zip(problem.outputs, problem.views, strict=True) if not view]
    compulsory = int(read) + (max(made, default=0) if problem.outputs_share else sum(made))
    bandwidth = largest_bandwidth(host.ceilings, compulsory)
    if bandwidth is None:
        return None
    floor_ms = FLOOR_SHARE * compulsory / (bandwidth * 1e9) * 1000
    return Floor(compulsory, bandwidth, floor_ms, tuple(known))


def judge_arithmetic(session: Session, findings: Findings, host: HostReport | None) -> None:
    """Beyond the arithmetic peak algebra must have removed work: said so, and checked again in full on fresh inputs."""
    candidate, flops = findings.timing.candidate, findings.strength.flops
    if host is None or candidate is None or not flops or not candidate.median_ms:
        return
    reached = flops / (candidate.median_ms * 1e6)
    peak = max(host.ceilings.peak_gflops.values(), default=0.0)
    if not peak or reached <= peak:
        return
    started = time.monotonic()
    session.tell("check", "needs less work than written; checking it again on fresh inputs")
    trials = check_again(session, findings)
    session.spend("checking again", started)
    detail = (
        f"{reached:.4g} GFLOP/s of the work as written, beyond the {peak:.4g} this machine reaches: algebra has removed some. "
        f"Checked again on fresh inputs: {trials} of {trials} trials passed"
    )
    findings.robustness.append(Robustness(ALGEBRA, True, detail))
