"""The Conductor's bookkeeping: advice held against what happened, the best version, and when it is enough.

Pure functions of a run's history, the same for every Conductor that advises (`apps.agents.ports.Conductor`).
"""

from __future__ import annotations

from dataclasses import replace

from apps.agents import profiler
from apps.agents.words import Advice, Attempt, Happened, History, Holding
from apps.kernels.evaluation import Evaluation, Profile, Verdict

# Below this a lead says nothing (the least margin the judge itself allows an outcome), so the earlier version stays.
LEAST_LEAD = 0.01
MOST_CONTENDERS = 3
# Iterations in a row that brought no new version, after which a coder is taken to have nothing more to say.
DRY_ITERATIONS = 2


def without_profile(history: History) -> History:
    """The history as the paper's baseline sees it: verdicts and times, no metrics."""

    def bare(evaluation: Evaluation) -> Evaluation:
        return replace(evaluation, profile=Profile())

    return replace(
        history,
        attempts=tuple(replace(attempt, evaluation=bare(attempt.evaluation)) for attempt in history.attempts),
        reference=bare(history.reference) if history.reference is not None else None,
    )


# --- holding advice against what happened -----------------------------------------------------------------------


def hold(advice: Advice, base: Attempt | None, followed: Attempt) -> Holding:
    """An advice held against the version that followed it: each predicted ratio beside the measured one.

    It held if every prediction that could be compared came out within its range; None if none could.
    """
    before = profiler.metrics(base.evaluation) if base is not None else {}
    after = profiler.metrics(followed.evaluation) if followed.evaluation.verdict is Verdict.CORRECT else {}
    happened = []
    for expected in advice.expected:
        was, now = before.get(expected.metric), after.get(expected.metric)
        if was is None or now is None:
            continue
        within = expected.low * was.value <= now.value <= expected.high * was.value
        happened.append(
            Happened(expected.metric, expected.ratio, expected.low, expected.high, was.value, now.value, held=within)
        )
    held = all(one.held for one in happened) if happened else None
    return Holding(advice.number, followed.number, held, tuple(happened))


def due(history: History, iteration: int) -> tuple[Holding, ...]:
    """The advices that an iteration's versions followed, held against the last version of each slot."""
    last_of_slot = {attempt.slot: attempt for attempt in history.attempts if attempt.iteration == iteration}
    holdings = []
    for slot in sorted(last_of_slot):
        followed = last_of_slot[slot]
        advice = next((one for one in history.advices if one.number == followed.advice), None)
        if advice is not None:
            holdings.append(hold(advice, history.attempt(advice.base), followed))
    return tuple(holdings)


# --- the best ---------------------------------------------------------------------------------------------------


def speed(attempt: Attempt) -> float:
    """The median speed-up of a correct version, 0 for any other."""
    return attempt.evaluation.speedup or 0.0


def champion(history: History) -> Attempt | None:
    """The best version: in order of writing, one takes the lead only by more than `LEAST_LEAD`."""
    leader = history.attempt(history.best)
    if leader is not None and not speed(leader):
        leader = None
    for attempt in history.attempts:
        if speed(attempt) > (speed(leader) * (1 + LEAST_LEAD) if leader is not None else 0.0):
            leader = attempt
    return leader


def contenders(history: History) -> tuple[Attempt, ...]:
    """The best version and those that may be as fast: whose 95% interval reaches the best one's. Fastest first."""
    leader = champion(history)
    if leader is None:
        return ()
    floor = _interval(leader)[0]
    rivals = [
        attempt
        for attempt in history.attempts
        if speed(attempt) and attempt.number != leader.number and _interval(attempt)[1] >= floor
    ]
    rivals.sort(key=speed, reverse=True)
    return (leader, *rivals[: MOST_CONTENDERS - 1])


def wins(duel: Evaluation) -> bool:
    """Whether a contender timed against the leader is clearly the faster one; otherwise the leader stays."""
    return bool(duel.speedup) and duel.timing.speedup is not None and duel.timing.speedup.ci95[0] > 1.0


def _interval(attempt: Attempt) -> tuple[float, float]:
    speedup = attempt.evaluation.timing.speedup
    return speedup.ci95 if speedup is not None else (0.0, 0.0)


# --- when it is enough ------------------------------------------------------------------------------------------


def enough(history: History, iteration: int, goal: float | None, plateau: int) -> str | None:
    """Why there is nothing more to be gained after this iteration, for a person to read; None while there is."""
    best = history.attempt(history.best)
    if best is not None and goal is not None and speed(best) >= goal:
        return f"The goal of {goal:g}x is reached."
    if best is not None and 0 < plateau <= iteration - best.iteration:
        return f"Nothing got faster in {plateau} iterations."
    return _dry(history, iteration)


def _dry(history: History, iteration: int) -> str | None:
    newest = max((attempt.iteration for attempt in history.attempts), default=0)
    reasons = [dropped for dropped in history.unwritten if dropped.iteration == iteration]
    if newest == iteration or not reasons:
        return None
    if not history.attempts and all(dropped.copy_of is None for dropped in reasons):
        return f"The coder can't write this kernel: {reasons[0].reason}"
    if iteration - newest >= DRY_ITERATIONS:
        return f"The coder has written nothing new in {DRY_ITERATIONS} iterations: {reasons[-1].reason}"
    return None
