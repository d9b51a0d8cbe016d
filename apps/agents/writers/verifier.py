"""The Verifier's reading of a failure, by a model."""

from __future__ import annotations

from dataclasses import replace

from apps.agents.gateway.asking import Answer, Gateway
from apps.agents.ports import Say, Stopped
from apps.agents.words import Assignment, Attempt, CannotWrite, Diagnosis, Ending, History, NoDiagnosis
from apps.agents.writers import questions
from apps.agents.writers.conversation import Conversation, Unanswered
from apps.agents.writers.diagnosis import diagnosis_in
from apps.agents.writers.unusable import Unusable

_TEMPERATURE = 0.2
_FORM = "one JSON object with `wrong`, `line` and `change`, and nothing else"
# A few hundred words and, for a model that reasons, some pages before them. A candidate may take eight times that: where
# the reading would get as long as writing another one, another one is the better buy.
_ANSWER_TOKENS = 4000


class ModelVerifier:
    """Reads failures by asking a model (`apps.agents.ports.Verifier`).

    An answer that can't be used goes back once with the reason; after that there is no diagnosis.
    """

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def diagnose(self, assignment: Assignment, history: History, failed: Attempt, say: Say) -> Diagnosis | NoDiagnosis:
        """See `apps.agents.ports.Verifier.diagnose`."""
        try:
            messages = questions.to_diagnose(assignment, failed, self._gateway.terms.prompt_characters)
        except CannotWrite as tight:
            return NoDiagnosis(str(tight), said=str(tight))
        purpose = f"diagnose v{failed.number}"
        talk = Conversation(self._gateway, messages, purpose, _TEMPERATURE, say, _ANSWER_TOKENS)
        try:
            found = _asked(talk, assignment, failed)
        except (Unanswered, Unusable) as failure:
            return NoDiagnosis(str(failure), talk.usage, talk.text)
        except Stopped as stopped:
            if stopped.ending is not Ending.FINISHED:
                raise
            # a limit: whether it ends the run is for the repair to find out
            return NoDiagnosis(str(stopped), stopped.usage, stopped.text)
        return replace(found, usage=talk.usage, said=talk.text)


def _asked(talk: Conversation, assignment: Assignment, failed: Attempt) -> Diagnosis:
    """The model's diagnosis, sent back once where it can't be used."""
    answer = talk.ask()
    try:
        return diagnosis_in(answer.text, failed)
    except Unusable as unusable:
        why = questions.sent_back(assignment, _reason(answer, unusable), _FORM)
    return diagnosis_in(talk.ask_again(answer, why).text, failed)


def _reason(answer: Answer, unusable: Unusable) -> str:
    return str(unusable) if answer.complete else f"it was cut short ({answer.why_cut}), and {unusable}"
