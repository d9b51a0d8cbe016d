"""The Verifier's and the Profiler's steps: what a device is asked to judge, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from apps.agents import conductor, profiler, verifier
from apps.agents.facts import BestChanged, Fact, ReferenceTimed, StepKey, VersionJudged, VersionKept
from apps.agents.journal import digest
from apps.agents.ports import JudgingFailed, Say, Stopped
from apps.agents.steps.course import Course, End, Interruption
from apps.agents.steps.writing import Draft
from apps.agents.words import Agent, Attempt, Ending, Usage
from apps.kernels.evaluation import Evaluation, Tier, Verdict


@dataclass(frozen=True)
class Work:
    """What a device is asked for (`apps.agents.ports.Evaluator.evaluate`)."""

    source: str
    tier: Tier = Tier.QUICK
    profile: bool = False
    against: str | None = None
    real_headers: bool = False
    finishing: bool = False


@dataclass(frozen=True)
class Judged:
    """What a device came to: an evaluation, the reason why it couldn't judge, or an interruption."""

    evaluation: Evaluation | None = None
    failed: str | None = None
    stopped: Interruption | None = None


@dataclass(frozen=True)
class Spoken:
    """What an agent says, in one paragraph and in full."""

    summary: str
    text: str


def verify(run: Course, draft: Draft) -> Attempt:
    """The Verifier has the device build, check and measure a candidate, which is a version from then on."""
    number = run.memory.next_version

    def attempt(evaluation: Evaluation) -> Attempt:
        return Attempt(number=number, evaluation=evaluation, **vars(draft))

    def told(evaluation: Evaluation) -> Sequence[Fact]:
        kept = VersionKept(attempt(evaluation))
        first = run.memory.history.reference is None and evaluation.timing.reference is not None
        return [kept, ReferenceTimed(evaluation)] if first else [kept]

    key = StepKey(draft.iteration, draft.slot, "verify", draft.repair)
    work = Work(draft.writing.source, profile=run.assignment.profile)
    judged = attempt(_judge(run, key, f"Checking v{number}", work, told))
    run.memory.keep(judged)
    return judged


def profile(run: Course, attempt: Attempt) -> None:
    """The Profiler says what the judgement measured of a correct version, beside the best one's figures."""
    key = StepKey(attempt.iteration, attempt.slot, "profile", attempt.repair)
    best = run.memory.best

    def do(say: Say) -> Spoken:
        text = profiler.report(attempt.evaluation, best.evaluation if best is not None else None)
        say(text)
        return Spoken(profiler.summary(attempt.evaluation), text)

    def told(spoken: Spoken) -> Sequence[Fact]:
        return [run.ended(key, Agent.PROFILER, spoken.summary, spoken.text)]

    began = run.began(key, Agent.PROFILER, f"Reading the figures of v{attempt.number}")
    run.team.journal.step(key, [run.memory.trail, attempt.number], Spoken, do, began=began, tell=told)


def confirm(run: Course, attempt: Attempt, *, finishing: bool) -> bool:
    """Build and check a `load_inline` version once with Torch's own headers, before it is called best: does it hold?"""
    # A confirmation that a stop cut short is done again when the run finishes, so that is another step.
    role = "confirm-last" if finishing else "confirm"
    key = StepKey(attempt.iteration, attempt.slot, role, attempt.repair)
    title = f"Confirming v{attempt.number} with Torch's own headers"
    work = Work(attempt.writing.source, real_headers=True, finishing=finishing)
    evaluation = _judge(run, key, title, work, lambda e: [VersionJudged(attempt.number, "real_headers", e)])
    run.memory.rejudge(attempt.number, evaluation)
    run.memory.confirmed.add(attempt.number)
    return evaluation.verdict is Verdict.CORRECT


def duel(run: Course, rival: Attempt, leader: Attempt, iteration: int) -> Attempt:
    """Two contenders are timed against each other: the faster one, or the leader where it can't be told.

    The quick tier is enough: this orders the two and claims nothing. Where the device can't time them, as when the leader
    fails now, the leader stays: what it is worth is told when it is judged in full.
    """

    def told(evaluation: Evaluation) -> Sequence[Fact]:
        judged = VersionJudged(rival.number, "rival", evaluation, rival_of=leader.number)
        won = conductor.wins(evaluation)
        return [judged, BestChanged(rival.number, conductor.speed(rival))] if won else [judged]

    key = StepKey(iteration, rival.number, "rival", leader.number)
    title = f"Timing v{rival.number} against v{leader.number}"
    work = Work(rival.writing.source, against=leader.writing.source, finishing=True)
    evaluation = _judge_twice(run, key, title, work, told).evaluation
    if evaluation is None:
        return leader
    run.memory.rejudge(rival.number, evaluation)
    if not conductor.wins(evaluation):
        return leader
    run.memory.crown(rival.number)
    return rival


def judge_in_full(run: Course, attempt: Attempt, iteration: int, *, real_headers: bool) -> Evaluation:
    """All statistics, with torch.compile beside it: the one judgement that may call a version faster."""

    def told(evaluation: Evaluation) -> Sequence[Fact]:
        judged = VersionJudged(attempt.number, "final", evaluation)
        leads = evaluation.verdict is Verdict.CORRECT and attempt.number != run.memory.history.best
        return [judged, BestChanged(attempt.number, conductor.speed(attempt))] if leads else [judged]

    key = StepKey(iteration, attempt.number, "final")
    source, wanted = attempt.writing.source, run.assignment.profile
    work = Work(source, Tier.FULL, profile=wanted, real_headers=real_headers, finishing=True)
    evaluation = _judge(run, key, f"Judging v{attempt.number} in full", work, told)
    run.memory.rejudge(attempt.number, evaluation)
    if evaluation.verdict is Verdict.CORRECT:
        run.memory.crown(attempt.number)
    return evaluation


def _judge(
    run: Course, key: StepKey, title: str, work: Work, told: Callable[[Evaluation], Sequence[Fact]]
) -> Evaluation:
    """One judgement, without which a run can't go on."""
    judged = _judge_twice(run, key, title, work, told)
    if judged.evaluation is None:
        raise End(f"The device could not judge: {judged.failed}", Ending.FAILED)
    return judged.evaluation


def _judge_twice(
    run: Course, key: StepKey, title: str, work: Work, told: Callable[[Evaluation], Sequence[Fact]]
) -> Judged:
    """A device that couldn't judge is asked once more: it may be back by then, or be another process."""
    judged = _judge_once(run, key, title, work, told)
    if judged.failed is not None:
        judged = _judge_once(run, replace(key, role=f"{key.role}-again"), title, work, told)
    if judged.stopped is not None:
        raise judged.stopped.end()
    return judged


def _judge_once(
    run: Course, key: StepKey, title: str, work: Work, told: Callable[[Evaluation], Sequence[Fact]]
) -> Judged:
    # The content is in the device's key too: after a replay that ended early, a step's name may mean other work.
    name = f"{key}-{digest(work)[:12]}"

    def do(say: Say) -> Judged:
        options = {field: value for field, value in vars(work).items() if field not in ("source", "tier")}
        try:
            return Judged(run.team.evaluator.evaluate(name, work.source, work.tier, say=say, **options))
        except JudgingFailed as failed:
            return Judged(failed=str(failed))
        except Stopped as stopped:
            return Judged(stopped=Interruption.of(stopped))

    def facts(judged: Judged) -> Sequence[Fact]:
        evaluation = judged.evaluation
        if evaluation is None:
            why = judged.failed if judged.stopped is None else judged.stopped.reason
            return [run.ended(key, Agent.VERIFIER, f"Not judged: {why}")]
        usage = Usage(seconds=evaluation.seconds)
        summary, text = verifier.summary(evaluation), verifier.report(evaluation)
        return [run.ended(key, Agent.VERIFIER, summary, text, usage), *told(evaluation)]

    began = run.began(key, Agent.VERIFIER, title)
    return run.team.journal.step(key, [run.memory.trail, work], Judged, do, began=began, tell=facts)
