"""Is it right? A runner with poisoned memory, several distributions, and every element of every output compared."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace

from apps.kernels.evaluation import Correctness, Robustness, Trial
from apps.kernels.inside.draw_names import (
    AS_GIVEN,
    CANCELLING,
    CANCELLING_PAIRS,
    CANCELLING_ROWS,
    INFINITE,
    LOW_BITS,
    NAN,
    SUBNORMAL,
)
from apps.kernels.judge import buffers
from apps.kernels.judge.comparer import Comparison, Copy
from apps.kernels.judge.content import Recipe
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.runner import Runner
from apps.kernels.judge.session import Session

BEYOND = (SUBNORMAL, INFINITE, NAN)  # the mildest first: buffers that are updated keep what they were given
SLOT = 1  # trials use one slot of the bank
CALLS = 2  # of each trial: a race rarely gives the same wrong answer twice
WHOLE = (LOW_BITS, CANCELLING, CANCELLING_PAIRS, CANCELLING_ROWS)  # whose lower bits say what is to be said
LOOKS_ALIKE = 2  # of a quick look, which has one such check; a full judgement has several, each in another process


def check(session: Session, runner: Runner, hows: Sequence[str], label: str = "") -> list[Trial]:
    """Run a trial for each distribution; stops at the first that fails. Raises `CandidateFailed` when a call does."""
    trials = []
    for index, how in enumerate(hows):
        session.tell("check", f"{label}{how}", index / len(hows))
        seed = session.oracle.draw(SLOT, how)
        # timed calls' inputs are thinned, so every second trial's are: nobody knows one kind of call from the other by that
        thinned = secrets.randbits(48) if index % 2 and how not in WHOLE else None
        found = [_trial(session, runner, Recipe(SLOT, SLOT, thinned), how, seed, index)]
        if index == 0 and found[0] is not None and found[0].passed:
            found += _looks_alike(session, runner)
        trials += [replace(trial, name=f"{label}{trial.name}") for trial in found if trial is not None]
        if trials and not trials[-1].passed:
            break
    return trials


def once(session: Session, runner: Runner, how: str) -> Trial | None:
    """One call alone; None where torch's own float32 is not near float64. Raises `CandidateFailed` when it fails."""
    seed = session.oracle.draw(SLOT, how)
    return _trial(session, runner, Recipe(SLOT, SLOT), how, seed, 0, calls=1)


def _looks_alike(session: Session, runner: Runner) -> list[Trial | None]:
    looks: list[Trial | None] = []
    for _ in range(1 if session.full else LOOKS_ALIKE):
        looks.append(_look_alike(session, runner))
        if (last := looks[-1]) is None or not last.passed:
            break
    return looks


def _look_alike(session: Session, runner: Runner) -> Trial | None:
    """The inputs just tried with few elements changed, at the same place: an answer kept by a few of them is wrong."""
    seed = session.oracle.draw(SLOT + 1, session.alike)
    recipe = Recipe(SLOT, SLOT + 1, secrets.randbits(48), alike=True)
    session.contents.ask(recipe)
    answer = session.oracle.try_answer()
    if answer is None or not answer.finite:
        return None  # the reference doesn't take mixtures
    return _trial(session, runner, recipe, "one element in sixteen changed", seed, 0)


def _trial(
    session: Session, runner: Runner, recipe: Recipe, how: str, seed: int, index: int, calls: int = CALLS
) -> Trial | None:
    """One set of inputs; None where the reference can't take it, or torch's float32 is not near float64."""
    oracle, comparer = session.oracle, session.comparer
    place = runner.places.firsts[index % len(runner.places.firsts)]
    comparisons: list[Comparison] = []
    session.contents.ask(recipe)
    answer = oracle.try_answer(buffers.lay(oracle, buffers.values_in(oracle, runner)))
    if answer is None:
        return None
    first: Copy | None = None
    wrong_buffer: str | None = None
    for repeat in range(calls):
        if repeat and oracle.problem.updated:  # the answer of a call may depend on what the one before has left
            answer = oracle.answer(buffers=buffers.lay(oracle, buffers.values_in(oracle, runner)))
        session.contents.write(recipe, runner.arena, runner.place(place))
        window = runner.call([place], keep=1, timeout=min(session.call_seconds, session.left))
        copy = comparer.copy(len(comparisons), runner, window.outputs[0])
        runner.check_alone()
        wrong_buffer = wrong_buffer or buffers.that_differs(oracle, buffers.values_in(oracle, runner))
        if first is not None and not oracle.problem.updated and comparer.same(first, copy):
            break
        first = copy
        comparison = comparer.compare(copy, answer, how)
        if how == AS_GIVEN:
            session.usually_finite = answer.finite
        elif not answer.finite and session.usually_finite and not comparison.passed:
            return None  # what it was not promised; where infinities belong to the problem they excuse nothing
        if not comparison.near:
            return None
        comparisons.append(comparison)
        if not comparison.passed:
            break
    worst = max(comparisons, key=lambda c: (not c.passed, (c.error or 0.0) / (c.tolerance or 1.0)))
    spec = oracle.problem.outputs[worst.worst]
    detail = worst.detail
    if wrong_buffer:
        detail = buffers.words(wrong_buffer)
    if worst.left_out:
        detail = f"{detail} {worst.left_out} elements at a discontinuity left out".strip()
    return Trial(
        name=how,
        seed=f"{seed:012x}",
        shape=spec.shape,
        dtype=spec.dtype,
        passed=worst.passed and not wrong_buffer,
        error=worst.error,
        tolerance=worst.tolerance,
        detail=detail,
    )


def summarise(trials: Sequence[Trial]) -> Correctness:
    """All trials as one: how many passed, and the worst error beside its tolerance."""
    known = [t for t in trials if t.error is not None]
    worst = max(known, key=lambda t: (not t.passed, (t.error or 0.0) / (t.tolerance or 1.0)), default=None)
    return Correctness(
        trials=len(trials),
        passed=sum(t.passed for t in trials),
        max_error=worst.error if worst else None,
        tolerance=worst.tolerance if worst else None,
        details=tuple(trials),
    )


def beyond(session: Session, runner: Runner) -> list[Robustness]:
    """Values beyond what is promised: shown as holding or specialised, refusing nobody."""
    oracle, found = session.oracle, []
    for how in BEYOND:
        try:
            oracle.draw(SLOT, how)
            recipe = Recipe(base=SLOT, donor=SLOT)
            session.contents.ask(recipe)
            answer = oracle.try_answer(buffers.lay(oracle, buffers.values_in(oracle, runner)))
            if answer is None:
                found.append(Robustness(how, False, "the reference does not take them", tried=False))
                continue
            session.contents.write(recipe, runner.arena, runner.place(0))
            window = runner.call([0], keep=0, timeout=min(session.call_seconds, session.left))
            comparison = session.comparer.compare(session.comparer.copy(0, runner, window.outputs[0]), answer)
        except CandidateFailed as failure:
            found.append(Robustness(how, False, failure.detail))
            break
        if not comparison.near:
            continue
        found.append(Robustness(how, comparison.passed, comparison.detail))
    return found
