"""A candidate's way through this host: static rules, build, jail, check, time, profile, evaluation."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

from apps.kernels.evaluation import Evaluation, EvaluationRequest, Language, Progress, Verdict
from apps.kernels.host.noise import noise_of_this_host
from apps.kernels.host.processor import available_memory
from apps.kernels.inspect import inspect
from apps.kernels.jail import JailFailed, Zygote, ZygoteFailed, refusal
from apps.kernels.judge import generality, profiling, ruling
from apps.kernels.judge.checking import check
from apps.kernels.judge.errors import CandidateFailed, HostCannotJudge, ProblemRefused, ProblemTooLarge
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.lock import device_lock
from apps.kernels.judge.observing import Observed
from apps.kernels.judge.racing import race
from apps.kernels.judge.session import SHARE_OF_MEMORY, Session
from apps.kernels.judge.strength import follow, strength_of
from apps.kernels.judge.what_ran import judge_what_ran
from apps.kernels.machine import HostReport
from apps.kernels.problem import BadProblem, read_problem


def evaluate(
    request: EvaluationRequest,
    *,
    zygote: Zygote | None = None,
    host: HostReport | None = None,
    observe: Callable[[Progress], None] = lambda _progress: None,
) -> Evaluation:
    """Judge one candidate. `zygote` saves importing torch again; `host` gives ceilings and noise measured before.

    Raises `ProblemRefused` for a problem that can't be judged and `HostCannotJudge` for a host that can't; whatever
    the candidate does becomes a verdict.
    """
    findings = Findings(request)
    if request.language is not Language.CPP:
        raise HostCannotJudge(f"this host judges cpp on its CPU, not {request.language.value}")
    try:
        problem = read_problem(request.problem, request.overrides)
    except BadProblem as problem_fault:
        raise ProblemRefused(str(problem_fault)) from None
    findings.rejections += ruling.static_rules(request)
    if findings.rejections:
        return findings.evaluation(Verdict.REJECTED, findings.rejections[0].detail)
    try:
        return _on_this_device(request, problem.source, zygote, host, observe, findings, trusted=False)
    except ProblemTooLarge as refused:
        raise ProblemRefused(_sizes_that_fit(request, zygote) or str(refused)) from None


def _sizes_that_fit(request: EvaluationRequest, zygote: Zygote | None) -> str | None:
    """Where a problem is too large to judge here, the constants that would make it fit, in words."""
    with suppress(BadProblem, JailFailed, ZygoteFailed):
        room = int(available_memory() * SHARE_OF_MEMORY)
        known = inspect(
            request.problem,
            request.overrides,
            zygote=zygote,
            memory_bytes=room,
            examine=False,
            allow_weak_isolation=request.allow_weak_isolation,
        )
        return known.refusal
    return None


def compare_with_itself(
    problem: str,
    *,
    zygote: Zygote | None = None,
    deadline_seconds: float = 600.0,
    observe: Callable[[Progress], None] = lambda _progress: None,
) -> Evaluation:
    """Judge a problem's reference against itself, in full: what this host calls noise. Never faster, never slower.

    The only path on which code is timed without the policy: both sides are the problem's own. Raises as `evaluate`.
    """
    try:
        source = read_problem(problem).source
    except BadProblem as fault:
        raise ProblemRefused(str(fault)) from None
    same = re.sub(r"\bModel\b", "ModelNew", source)
    request = EvaluationRequest(source, same, against=same, profile=False, deadline_seconds=deadline_seconds)
    return _on_this_device(request, source, zygote, None, observe, Findings(request), trusted=True)


def _on_this_device(
    request: EvaluationRequest,
    source: str,
    zygote: Zygote | None,
    host: HostReport | None,
    observe: Callable[[Progress], None],
    findings: Findings,
    *,
    trusted: bool,
) -> Evaluation:
    """Wait for the device, then judge on it."""
    try:
        with ExitStack() as stack:
            own = zygote or Zygote()
            _refuse_weak_isolation(request, own)
            if zygote is None:
                stack.callback(own.close)
            own.start()
            waiting = time.monotonic()
            stack.enter_context(
                device_lock(
                    "cpu",
                    timeout=request.deadline_seconds,
                    waiting=lambda holder: observe(Progress("wait", f"process {holder} is using the device")),
                )
            )
            findings.split["waiting for the device"] = time.monotonic() - waiting
            findings.started = time.monotonic()
            return _judge(request, source, own, host, observe, findings, trusted=trusted)
    except (JailFailed, ZygoteFailed) as failure:
        raise HostCannotJudge(str(failure)) from None


def _refuse_weak_isolation(request: EvaluationRequest, zygote: Zygote) -> None:
    if why := refusal(zygote.planned_mode, allowed=request.allow_weak_isolation):
        raise HostCannotJudge(why)


def _judge(
    request: EvaluationRequest,
    source: str,
    zygote: Zygote,
    host: HostReport | None,
    observe: Callable[[Progress], None],
    findings: Findings,
    *,
    trusted: bool,
) -> Evaluation:
    started = time.monotonic()
    observe(Progress("check", "running the reference"))
    with Session(request, source, zygote, observe, trusted=trusted, split=findings.split) as session:
        session.spend("oracle", started)
        findings.describe_environment(zygote, session.threads)
        if not trusted:
            findings.strength = strength_of(session)
            follow(session, findings.strength)
        try:
            seconds = check(session, findings)
            noise = {**(host.noise if host else {}), **noise_of_this_host()}

            def watch(observed: Observed) -> None:
                if trusted:
                    return
                ruling.judge_floor(session, findings, host)
                judge_what_ran(session, findings, observed)
                ruling.judge_arithmetic(session, findings, host)
                profiling.profile(session, findings, observed, host)

            race(session, findings, seconds, noise, watch)
        except CandidateFailed as failure:
            return findings.failed(failure)
    generality.beyond(session, findings, seconds)
    return findings.evaluation(Verdict.CORRECT)
