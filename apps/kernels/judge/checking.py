"""The check stage: build the candidate once, look at what it calls, and try it on everything that was promised."""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from apps.kernels.evaluation import Build, Rejection, Setup
from apps.kernels.inside.draw_names import AS_GIVEN, NORMAL
from apps.kernels.jail import freeze as ice
from apps.kernels.judge import correctness, policy
from apps.kernels.judge.content import Recipe
from apps.kernels.judge.errors import CandidateFailed, ProblemRefused, readable
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.oracle import PUBLIC_SEED
from apps.kernels.judge.process_state import judge_process_state
from apps.kernels.judge.runner import PERTURB, Options, Runner
from apps.kernels.judge.session import Session

SCOUTING_CALLS = 7
OTHER_WEIGHTS = (AS_GIVEN, NORMAL)


def check(session: Session, findings: Findings) -> float:
    """Everything about being right; returns the seconds one call takes, roughly. Raises `CandidateFailed`."""
    session.oracle.draw(0)
    session.oracle.set_state()
    with runner_for_checks(session, first=True) as runner:
        _describe(session, findings, runner)
        started = time.monotonic()
        hows = findings.strength.full if session.full else findings.strength.quick
        findings.trials += correctness.check(session, runner, hows)
        _raise_if_failed(findings, runner)
        if not findings.trials:
            raise ProblemRefused(
                "on none of the inputs that were tried is torch's own result near the float64 answer, so no output can be "
                "called right. Choose inputs at which the problem is well conditioned"
            )
        judge_process_state(session, findings, runner)
        seconds = _scout(session, runner)
        if session.full:
            session.tell("check", "values beyond what is promised")
            findings.robustness += correctness.beyond(session, runner)
        session.spend("check", started)
    if session.full and session.oracle.problem.state:
        _check_other_weights(session, findings)
    return seconds


def set_other_weights(session: Session, missing: tuple[str, ...]) -> int:
    """Give the reference other weights; returns the seed that models must be constructed under.

    What a candidate has under no name (`missing`) it can't be handed: of that the seed decides, and what no seed changes is
    altered all the same. Who leaves out a scale of ones is wrong for any other.
    """
    seed = PUBLIC_SEED + 1 + secrets.randbelow(1 << 20)
    session.oracle.set_state(seed, secrets.randbits(40), missing)
    return seed


def _check_other_weights(session: Session, findings: Findings) -> None:
    started = time.monotonic()
    seed = set_other_weights(session, findings.missing)
    with runner_for_checks(session, seed=seed) as runner:
        findings.trials += correctness.check(session, runner, OTHER_WEIGHTS, "other weights, ")
        _raise_if_failed(findings, runner)
    session.oracle.set_state()
    session.spend("check", started)


@contextmanager
def runner_for_checks(
    session: Session,
    *,
    first: bool = False,
    seed: int = PUBLIC_SEED,
    what: str = "starting it again",
    askew: bool = False,
) -> Iterator[Runner]:
    """A runner of the candidate with poisoned memory between pages that can't be touched; the first one builds it."""
    started = time.monotonic()
    options = Options(
        role="candidate",
        source=session.request.candidate,
        warm_seconds=0.0,
        perturb=PERTURB,
        guard=True,
        askew=askew,
        observe=first,
        seed=seed,
    )
    session.tell("build", "building the candidate" if first else what)
    runner = session.runner(options, first=first)
    if first:
        session.artefacts = runner.built
    session.spend("build" if first else "starting runners", started)
    try:
        yield runner
    finally:
        session.end(runner)


def _describe(session: Session, findings: Findings, runner: Runner) -> None:
    log = runner.jailed.output.strip()
    news = runner.news
    findings.build = Build(round(news.build_seconds, 4), readable(log[-8000:]))
    findings.setup = Setup(round(news.setup_seconds, 4), news.setup_bytes)
    findings.missing, session.renamed = news.missing, news.renamed
    if not news.guarded:
        findings.environment["guard pages"] = "none around tensors: this torch's allocator is not laid out as expected"
    findings.library_calls = policy.library_calls(news.operators)
    findings.operators, findings.allocated, findings.products = news.operators, news.allocated, news.products
    refused = [] if session.trusted else policy.judge_operators(news.operators, session.request.policy)
    runtimes = policy.openmp_runtimes(ice.mapped_objects(runner.jailed.pid))
    if len(runtimes) > 1:
        refused.append(
            Rejection(
                "one OpenMP runtime",
                "the candidate's process",
                f"{' and '.join(runtimes)} are both loaded; torch's own threads then run a hundred times slower. "
                "Build with g++ -fopenmp, or link the runtime that torch has loaded",
            )
        )
    findings.reject(refused)


def check_again(session: Session, findings: Findings) -> int:
    """All distributions once more on fresh inputs, in a fresh process; returns how many trials passed."""
    with runner_for_checks(session, what="checking it again") as runner:
        again = correctness.check(session, runner, findings.strength.full, "again, ")
        findings.trials += again
        _raise_if_failed(findings, runner)
    return len(again)


def _raise_if_failed(findings: Findings, runner: Runner) -> None:
    wrong = next((trial for trial in findings.trials if not trial.passed), None)
    if wrong is None:
        return
    hint, missing = "", runner.news.missing
    if missing:
        names = ", ".join(missing[:4])
        hint = f" (ModelNew has no parameters named {names}, nor others like them, so it could not be given the reference's)"
    raise CandidateFailed("incorrect", f"{wrong.name}: {wrong.detail}{hint}")


def _scout(session: Session, runner: Runner) -> float:
    """How long a call takes, to size the windows by."""
    recipe = Recipe(base=correctness.SLOT, donor=correctness.SLOT)
    session.contents.write(recipe, runner.arena, runner.place(0))
    times = [runner.call([0], keep=0, timeout=min(60.0, session.left)).nanoseconds for _ in range(SCOUTING_CALLS)]
    return statistics.median(times) / 1e9
