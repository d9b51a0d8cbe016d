"""The Conductor that is a model."""

from __future__ import annotations

from apps.agents import profiler
from apps.agents.gateway.asking import Answer, Gateway
from apps.agents.ports import Say
from apps.agents.words import Advice, Assignment, Attempt, Evidence, History, NothingToGain, Usage
from apps.agents.writers import questions
from apps.agents.writers.conversation import Conversation, Unanswered
from apps.agents.writers.counsel import Counsel, counsel_in
from apps.agents.writers.fitting import DoesNotFit
from apps.agents.writers.unusable import Unusable
from apps.kernels.profile.bottleneck import Cause

_TEMPERATURE = 0.2
_FORM = "one JSON object of the shape described at the beginning, and nothing else"
_DONE = frozenset({Cause.AT_THE_ROOF.value, Cause.AT_THE_PEAK.value})


class ModelConductor:
    """Reads profiles by asking a model (`apps.agents.ports.Conductor`).

    An answer whose evidence is not in the profile, or not true of it, goes back once. What still can't be used then is
    left out; where nothing is left, the profile's own bottleneck is the advice, and it says so.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def advise(self, assignment: Assignment, history: History, say: Say) -> Advice | NothingToGain:
        """See `apps.agents.ports.Conductor.advise`."""
        best = history.attempt(history.best)
        if best is None:
            return NothingToGain("no version is correct yet")
        try:
            room = self._gateway.terms.prompt_characters
            messages = questions.to_advise(assignment, history, best, room)
        except DoesNotFit as tight:
            return _by_the_table(best, str(tight), None)
        purpose = f"advise on v{best.number}, {len(questions.unfollowed(history)) + 1}"
        talk = Conversation(self._gateway, messages, purpose, _TEMPERATURE, say)
        try:
            counsel = _asked(talk, assignment, best)
        except (Unanswered, Unusable) as failed:
            return _by_the_table(best, str(failed), talk)
        return _advice(counsel, best, talk)


def _asked(talk: Conversation, assignment: Assignment, best: Attempt) -> Counsel:
    """The model's counsel, sent back once where something in it can't be used."""
    metrics = profiler.metrics(best.evaluation)
    answer = talk.ask()
    try:
        counsel = counsel_in(answer.text, metrics)
        if not counsel.problems:
            return counsel
        reason = "; ".join(counsel.problems)
    except Unusable as unusable:
        counsel, reason = Counsel(), str(unusable)
    try:
        better = counsel_in(_again(talk, assignment, answer, reason).text, metrics)
    except (Unusable, Unanswered):
        if counsel.complete:
            return counsel  # the first answer, without what was wrong in it
        raise
    if better.complete:
        return better
    if counsel.complete:
        return counsel
    raise Unusable("; ".join(better.problems))


def _again(talk: Conversation, assignment: Assignment, answer: Answer, reason: str) -> Answer:
    return talk.ask_again(answer, questions.sent_back(assignment, reason, _FORM))


def _advice(counsel: Counsel, best: Attempt, talk: Conversation) -> Advice | NothingToGain:
    if counsel.nothing_to_gain:
        return NothingToGain(counsel.nothing_to_gain, talk.usage, talk.text)
    left_out = (
        f"Left out, since the profile does not bear it: {'; '.join(counsel.problems)}." if counsel.problems else ""
    )
    return Advice(
        number=0,
        base=best.number,
        bottleneck=counsel.bottleneck,
        evidence=counsel.evidence,
        change=counsel.change,
        expected=counsel.expected,
        reasoning=" ".join(part for part in (counsel.why, left_out) if part),
        usage=talk.usage,
        said=talk.text,
    )


def _by_the_table(best: Attempt, why: str, talk: Conversation | None) -> Advice | NothingToGain:
    """What the profile itself says, where the model says nothing that can be used."""
    note = f"The model's answer could not be used: {why.rstrip('.')}. The profile's own reading stands in for it."
    usage = talk.usage if talk is not None else Usage()
    said = f"{talk.text}\n\n[{note}]" if talk is not None else note
    found = best.evaluation.profile.bottleneck
    if found is not None and found.name in _DONE:
        return NothingToGain(f"{found.name}. {found.explanation}", usage, said)
    return Advice(
        number=0,
        base=best.number,
        bottleneck=found.name if found is not None else "not known",
        evidence=_shown(best),
        change=found.explanation if found is not None else "Find what costs most and change that.",
        expected=(),
        reasoning=note,
        usage=usage,
        said=said,
    )


def _shown(best: Attempt) -> tuple[Evidence, ...]:
    found = best.evaluation.profile.bottleneck
    metric = profiler.metrics(best.evaluation).get(found.metric) if found is not None else None
    if found is None or metric is None:
        return ()
    relation = ">" if metric.value >= found.threshold else "<"
    return (Evidence(metric.name, metric.value, metric.unit, relation, found.threshold),)
