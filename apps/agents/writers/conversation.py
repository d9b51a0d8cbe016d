"""One agent's turn with a model: a question, its answer, and once more where that can't be used."""

from __future__ import annotations

from apps.agents.gateway import provider
from apps.agents.gateway.asking import Answer, Gateway
from apps.agents.gateway.faults import CallFailed, Fault
from apps.agents.gateway.purse import Message, Question
from apps.agents.ports import Say, Stopped
from apps.agents.words import Ending, Usage

LONGEST = 400_000  # characters of a step's text that are kept


class Unanswered(Exception):
    """The model gave no answer this time; another question may fare better."""


class Conversation:
    """What was said and spent so far in one step. `text` is everything that was streamed."""

    def __init__(
        self,
        gateway: Gateway,
        messages: tuple[Message, ...],
        purpose: str,
        temperature: float,
        say: Say,
        answer_tokens: int | None = None,
    ) -> None:
        self.usage = Usage()
        self._gateway = gateway
        self._messages = messages
        self._purpose = purpose
        self._temperature = temperature
        self._say = say
        self._answer_tokens = answer_tokens
        self._said: list[str] = []

    @property
    def text(self) -> str:
        """All that was streamed in this step, as far as it is kept."""
        return "".join(self._said)[:LONGEST]

    def ask(self) -> Answer:
        """The answer. Raises `Unanswered`, and `Stopped` where the run can't go on with this model."""
        try:
            question = Question(self._messages, self._purpose, self._temperature, self._answer_tokens)
            answer = self._gateway.ask(question, self._hear)
        except CallFailed as failed:
            self.usage = provider.added(self.usage, failed.usage)
            if failed.fault.ends_run:
                raise self._end(failed) from None
            raise Unanswered(str(failed)) from None
        except Stopped as stopped:
            stopped.usage, stopped.text = provider.added(self.usage, stopped.usage), self.text
            raise
        self.usage = provider.added(self.usage, answer.usage)
        return answer

    def ask_again(self, answer: Answer, why: str) -> Answer:
        """Send an answer back with the reason why it can't be used."""
        room = self._gateway.terms.prompt_characters - sum(len(one.text) for one in self._messages) - len(why)
        if len(answer.text) <= room:
            self._messages = (*self._messages, Message("assistant", answer.text), Message("user", why))
        else:  # both don't fit: the question stands, with what must not happen again
            *before, question = self._messages
            self._messages = (*before, Message(question.role, f"{question.text}\n\nYour last answer: {why}"))
        self._hear(f"\n\n[Sent back: {why.strip()}]\n\n")
        return self.ask()

    def _hear(self, text: str) -> None:
        self._said.append(text)
        self._say(text)

    def _end(self, failed: CallFailed) -> Stopped:
        ending = Ending.FINISHED if failed.fault is Fault.LIMIT else Ending.FAILED
        return Stopped(str(failed), usage=self.usage, text=self.text, ending=ending)
