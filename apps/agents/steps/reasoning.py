"""The Conductor's steps: hold advice against what happened and keep the best; name the bottleneck and advise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from apps.agents import conductor
from apps.agents.facts import AdviceGiven, AdviceHeld, BestChanged, Fact, StepKey
from apps.agents.figures import figure
from apps.agents.ports import Say, Stopped
from apps.agents.steps.course import Course, End, Interruption
from apps.agents.words import Advice, Agent, Holding, NothingToGain, Usage


@dataclass(frozen=True)
class Kept:
    """What an iteration came to: its advices held against it, and the best version now."""

    holdings: tuple[Holding, ...] = ()
    best: int | None = None


@dataclass(frozen=True)
class Counsel:
    """What the Conductor came to: an advice, nothing to gain, or an interruption; `text` is all it said."""

    advice: Advice | None = None
    nothing: NothingToGain | None = None
    stopped: Interruption | None = None
    usage: Usage = field(default_factory=Usage)
    text: str = ""


def keep(run: Course, iteration: int) -> None:
    """Hold the iteration's advices against what happened, and keep the best version."""
    history = run.memory.history

    def do(say: Say) -> Kept:
        champion = conductor.champion(history)
        return Kept(conductor.due(history, iteration), champion.number if champion is not None else None)

    def told(kept: Kept) -> Sequence[Fact]:
        facts: list[Fact] = [AdviceHeld(holding) for holding in kept.holdings]
        best = history.attempt(kept.best)
        if best is not None and best.number != history.best:
            facts.append(BestChanged(best.number, conductor.speed(best)))
        return facts

    kept = run.team.journal.step(StepKey(iteration, 0, "keep"), run.memory.trail, Kept, do, tell=told)
    run.memory.held(kept.holdings)
    if kept.best != history.best:
        run.memory.crown(kept.best)


def advise(run: Course, iteration: int, slot: int) -> Advice | None:
    """Advice for one candidate of the next iteration. None: for this one there is none; `End`: for none at all."""
    key = StepKey(iteration, slot, "advise")
    history, number = run.history, run.memory.next_advice

    def do(say: Say) -> Counsel:
        try:
            answer = run.team.conductor.advise(run.assignment, history, say)
        except Stopped as stopped:
            return Counsel(stopped=Interruption.of(stopped), usage=stopped.usage, text=stopped.text)
        if isinstance(answer, NothingToGain):
            return Counsel(nothing=answer, usage=answer.usage, text=answer.reasoning)
        return Counsel(replace(answer, number=number, said=""), usage=answer.usage, text=answer.said)

    def told(counsel: Counsel) -> Sequence[Fact]:
        ended = run.ended(key, Agent.CONDUCTOR, *_says(counsel), counsel.usage)
        return [ended] if counsel.advice is None else [ended, AdviceGiven(counsel.advice)]

    began = run.began(key, Agent.CONDUCTOR, f"Reasoning from v{history.best}")
    counsel = run.team.journal.step(key, run.memory.trail, Counsel, do, began=began, tell=told)
    run.memory.paid(counsel.usage)
    if counsel.stopped is not None:
        raise counsel.stopped.end()
    if counsel.nothing is not None and slot == 0:
        raise End(f"Nothing more to gain: {counsel.nothing.reason}")
    if counsel.advice is not None:
        run.memory.advised(counsel.advice)
    return counsel.advice


def _says(counsel: Counsel) -> tuple[str, str]:
    if counsel.stopped is not None:
        return counsel.stopped.reason, counsel.text
    if counsel.advice is None:
        return (f"Nothing more to gain: {counsel.nothing.reason}" if counsel.nothing is not None else ""), counsel.text
    advice = counsel.advice
    seen = ", ".join(
        f"{one.metric.replace('_', ' ')} is {figure(one.value, one.unit)} ({one.relation} {figure(one.threshold, one.unit)})"
        for one in advice.evidence
    )
    return f"{advice.bottleneck}{': ' + seen if seen else ''}. {advice.change}", counsel.text or advice.reasoning
