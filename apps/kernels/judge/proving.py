"""A judgement without times, for trying the judge itself: what is right, what ran, and that timed calls are checked."""

from __future__ import annotations

import statistics
import time
from contextlib import closing
from dataclasses import dataclass

from apps.kernels.evaluation import Evaluation, EvaluationRequest, Time, Timing, Verdict
from apps.kernels.jail import Zygote
from apps.kernels.judge import generality, ruling
from apps.kernels.judge.artefacts import Artefacts
from apps.kernels.judge.checking import check
from apps.kernels.judge.errors import CandidateFailed, ProblemRefused
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.observing import Observed
from apps.kernels.judge.racing import WARM_SECONDS
from apps.kernels.judge.runner import Options
from apps.kernels.judge.seen import timed_calls
from apps.kernels.judge.session import Opened, Session
from apps.kernels.judge.strength import follow, strength_of
from apps.kernels.judge.timing import Group, Timer, block_size, regions_of, spills, ways_of
from apps.kernels.judge.what_ran import judge_what_ran
from apps.kernels.machine import HostReport
from apps.kernels.problem import BadProblem, read_problem
from apps.kernels.strength import Strength

LARGEST_BLOCK = 4  # calls a window: nobody is timed, so windows needn't be long
CALLS = 40  # at least
CHECKED_WHOLE, CHECKED_PAGES = 5, 5  # a candidate that cheats in every other call passes one time in a thousand


@dataclass(frozen=True)
class Proof:
    """What was found, and what the candidate built: for another one that carries the same source."""

    evaluation: Evaluation
    built: Artefacts


def prove(
    request: EvaluationRequest,
    *,
    zygote: Zygote,
    opened: Opened | None = None,
    built: Artefacts | None = None,
    strength: Strength | None = None,
    host: HostReport | None = None,
) -> Proof:
    """Judge a candidate by what it does, whatever its text says, and time it against nobody.

    The checks are its tier's; then come calls like timed ones (a fresh process, secret content, secret checks) and the
    policy's samples. No lock is taken: as nothing is timed, several may run at once. `opened` and `strength` are the
    problem's, where they are known already. Raises as `evaluate`.
    """
    findings = Findings(request)
    try:
        source = read_problem(request.problem, request.overrides).source
    except BadProblem as fault:
        raise ProblemRefused(str(fault)) from None
    session = Session(
        request,
        source,
        zygote,
        lambda _progress: None,
        split=findings.split,
        opened=opened,
        artefacts=built or Artefacts(),
    )
    with session:
        findings.describe_environment(zygote, session.threads)
        findings.strength = strength or strength_of(session)
        follow(session, findings.strength)
        try:
            seconds = check(session, findings)
            _calls_like_timed_ones(session, findings, seconds, host)
        except CandidateFailed as failure:
            return Proof(findings.failed(failure), session.artefacts)
    generality.beyond(session, findings, seconds)
    return Proof(findings.evaluation(Verdict.CORRECT), session.artefacts)


def _calls_like_timed_ones(session: Session, findings: Findings, seconds: float, host: HostReport | None) -> None:
    started = time.monotonic()
    session.contents.draw_all(session.timed)
    block = min(LARGEST_BLOCK, block_size(session, seconds / LARGEST_BLOCK))  # so that most windows hold several
    options = Options(
        role="candidate",
        source=session.request.candidate,
        regions=regions_of(block),
        ways=ways_of(block),
        warm_seconds=WARM_SECONDS,
    )
    large = spills(session)
    with closing(session.timed_arena(options, lent=large)) as arena, closing(Timer(session)) as timer:
        runner = session.runner(options, arena=arena)
        try:
            group = Group({"candidate": runner}, block, laid_once=large)
            timer.settle(group)
            with timed_calls(group, findings.seen, full=session.full):
                timer.rounds(group, CALLS // block, CHECKED_WHOLE)
            timer.check(group, CHECKED_PAGES)
            middle = statistics.median(group.times["candidate"]) / 1000
            findings.timing = Timing(candidate=Time(middle, (min(group.times["candidate"]) / 1000, middle)))
            session.spend("calls like timed ones", started)
            ruling.judge_floor(session, findings, host)
            judge_what_ran(session, findings, Observed(session, runner, block, swept=large))
        finally:
            session.end(runner)
