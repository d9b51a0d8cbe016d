"""The Coder that is a model."""

from __future__ import annotations

from apps.agents import memory
from apps.agents.gateway.asking import Answer, Gateway
from apps.agents.ports import Say
from apps.agents.words import Assignment, Attempt, Brief, CannotWrite, History, Writing
from apps.agents.writers import questions
from apps.agents.writers.conversation import Conversation, Unanswered
from apps.agents.writers.reading import candidate_in, summary_of
from apps.agents.writers.unusable import Unusable

# The first candidate of an iteration follows its advice closely; the others may stray.
_TEMPERATURES = (0.2, 0.6, 0.8, 1.0)


class ModelCoder:
    """Writes and repairs candidates by asking a model (`apps.agents.ports.Coder`)."""

    def __init__(self, gateway: Gateway) -> None:
        self.name = gateway.settings.called
        self.at_once = gateway.settings.at_once
        self._gateway = gateway
        self._temperatures = gateway.settings.temperatures or _TEMPERATURES

    def write(self, brief: Brief, say: Say) -> Writing:
        """See `apps.agents.ports.Coder.write`."""
        history = brief.history
        base = history.attempt(brief.advice.base if brief.advice is not None else history.best)
        messages = questions.to_write(brief, base, self._room)
        temperature = self._temperature(brief.slot)
        purpose = f"write {brief.iteration}.{brief.slot}"
        talk = Conversation(self._gateway, messages, purpose, temperature, say)
        return self._written(talk, brief.assignment, history, base)

    def repair(self, brief: Brief, failed: Attempt, say: Say) -> Writing:
        """See `apps.agents.ports.Coder.repair`."""
        messages = questions.to_repair(brief, failed, self._room)
        temperature = self._temperature(failed.repair)
        purpose = f"repair {brief.iteration}.{brief.slot}.{failed.repair + 1}"
        talk = Conversation(self._gateway, messages, purpose, temperature, say)
        return self._written(talk, brief.assignment, brief.history, failed)

    def _temperature(self, place: int) -> float:
        return self._temperatures[min(place, len(self._temperatures) - 1)]

    @property
    def _room(self) -> int:
        return self._gateway.terms.prompt_characters

    def _written(self, talk: Conversation, assignment: Assignment, history: History, base: Attempt | None) -> Writing:
        """The candidate that the talk comes to; what can't be used goes back once. Raises `CannotWrite`."""
        try:
            answer = talk.ask()
            try:
                source = _new(answer, history, base)
            except Unusable as unusable:
                why = questions.sent_back(assignment, _reason(answer, unusable), questions.form_of(base))
                answer = talk.ask_again(answer, why)
                source = _new(answer, history, base)
        except Unanswered as unanswered:
            raise CannotWrite(str(unanswered), talk.usage, talk.text) from None
        except Unusable as unusable:
            reason = f"Twice the answer could not be used: {_reason(answer, unusable)}."
            raise CannotWrite(reason, talk.usage, talk.text) from None
        return Writing(source, summary_of(answer.text), talk.text, None, talk.usage)


def _new(answer: Answer, history: History, base: Attempt | None) -> str:
    """The answer's candidate. Raises `Unusable`, also where it is one that was there already."""
    source = candidate_in(answer.text, base.writing.source if base is not None else None)
    known = {memory.content(attempt.writing.source): attempt.number for attempt in history.attempts}
    if (number := known.get(memory.content(source))) is not None:
        raise Unusable(f"it is v{number} again, word for word. Write a different version")
    return source


def _reason(answer: Answer, unusable: Unusable) -> str:
    return str(unusable) if answer.complete else f"it was cut short ({answer.why_cut}), and {unusable}"
