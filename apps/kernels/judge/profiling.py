"""Handing the warm candidate to the profiler. A profile never changes a verdict: what can't be had, it says why not."""

from __future__ import annotations

import functools
import time
from dataclasses import replace

from apps.kernels.evaluation import Profile, Unavailable
from apps.kernels.facts import ProblemFacts, TensorFact
from apps.kernels.host.report import host_report
from apps.kernels.inspect import inspect
from apps.kernels.jail import JailFailed, Zygote, ZygoteFailed
from apps.kernels.judge.artefacts import Artefacts
from apps.kernels.judge.compiling import jailed_compiler
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.memory import TensorSpec
from apps.kernels.judge.observing import Observed
from apps.kernels.judge.profiled import profiled
from apps.kernels.judge.session import Session
from apps.kernels.machine import HostReport
from apps.kernels.problem import BadProblem
from apps.kernels.profile.candidate import profile_candidate
from apps.kernels.profile.dispatched import Dispatched

QUICK_SECONDS, FULL_SECONDS = 0.8, 1.5  # of running it; its machine code and the compiler take about another one


def profile(session: Session, findings: Findings, observed: Observed, host: HostReport | None) -> None:
    """Fill in the profile, if one was asked for. The candidate's runner is not to be judged by afterwards."""
    if not session.request.profile:
        return
    started = time.monotonic()
    session.tell("profile", "profiling the candidate")
    timing = findings.timing
    try:
        with profiled(observed.runner, _built(session, observed)) as runner:
            findings.profile = profile_candidate(
                _facts(session),
                runner,
                host or host_report(quick=True),
                candidate_us=1e3 * timing.candidate.median_ms if timing.candidate else None,
                window_us=timing.window_us,
                seconds=FULL_SECONDS if session.full else QUICK_SECONDS,
                dispatched=Dispatched(findings.operators, findings.allocated),
                reference=Dispatched(session.oracle.problem.operators, session.oracle.problem.allocated),
                compile_text=jailed_compiler(session.zygote),
                observe=session.observe,
            )
    except (CandidateFailed, OSError) as problem:
        why = Unavailable("profile", f"it could not be taken: {problem}")
        findings.profile = Profile(unavailable=(why,))
    session.spend("profile", started)


def _built(session: Session, observed: Observed) -> Artefacts:
    """What this runner's build left, with the compilers' runs of the first one: a candidate may find its library built."""
    built = observed.runner.built
    return replace(built, compilations=(*built.compilations, *session.artefacts.compilations))


def _facts(session: Session) -> ProblemFacts:
    """The problem's bytes and FLOPs; without a description of it, bytes alone: every input once, every output once."""
    try:
        known = _described(session.problem_source, session.zygote)
    except (BadProblem, JailFailed, ZygoteFailed):
        known = ProblemFacts(refusal="not described")
    if known.refusal is None:
        return known
    problem = session.oracle.problem
    inputs = tuple(_fact("input", spec) for spec in problem.inputs)
    return ProblemFacts(inputs=inputs, outputs=tuple(_fact("output", spec) for spec in problem.outputs))


@functools.lru_cache(maxsize=32)
def _described(source: str, zygote: Zygote) -> ProblemFacts:
    """Described once for all candidates of a problem that one zygote judges."""
    return inspect(source, zygote=zygote, examine=False, allow_weak_isolation=True)  # as the judgement in hand has been


def _fact(kind: str, spec: TensorSpec) -> TensorFact:
    return TensorFact(kind, kind, spec.dtype, spec.shape, spec.stride, spec.numel * spec.item)
