"""Money and tokens before they are spent: each call sets the most it can take aside first, so that calls side by side can't
overspend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from apps.agents.words import Usage


@dataclass(frozen=True)
class Message:
    """One message of a conversation; `role` is system, user or assistant."""

    role: str
    text: str


@dataclass(frozen=True)
class Question:
    """What is asked: the conversation so far, for which agent and which turn of the run (`purpose`), and how freely.

    `answer_tokens` is the longest answer wanted, where that is less than the model may give.
    """

    messages: tuple[Message, ...]
    purpose: str = ""
    temperature: float | None = None
    answer_tokens: int | None = None

    @property
    def characters(self) -> int:
        """The length of all of it."""
        return sum(len(message.text) for message in self.messages)


@dataclass(frozen=True)
class Call:
    """One call as it came out, for whoever keeps accounts and for people who want to read it. Free of secrets.

    `failure` is None where an answer came; `complete` says that it came to its own end. `fault` names what was wrong
    (`apps.agents.gateway.faults.Fault`); where it is None and `failure` is not, we ended the call ourselves.
    """

    model: str
    question: Question
    reasoning: str
    answer: str
    complete: bool
    usage: Usage
    failure: str | None = None
    fault: str | None = None


@dataclass(frozen=True)
class Largest:
    """The most a call can take: USD (None: its price is unknown) and tokens, the prompt's and the longest answer's."""

    cost_usd: float | None
    tokens: int = 0


class OverLimit(Exception):
    """The call may not be made: it could take more than is left. The message says whose limit, and what is left.

    `may_pass`: calls of the same run that are on their way have set aside what it lacks, and may give it back.
    """

    def __init__(self, message: str, *, may_pass: bool = False) -> None:
        super().__init__(message)
        self.may_pass = may_pass


class Purse(Protocol):
    """Keeps what a person and a run may spend. Called from the thread that asks; may write to a database.

    `reserve` is told before each call what it can take at most and gives a token for `settle`, which is told once what
    came of it, however the call ended. A worker that dies in between leaves the reservation standing. `reserve` raises
    `OverLimit`.
    """

    def reserve(self, model: str, purpose: str, largest: Largest) -> str: ...

    def settle(self, token: str, call: Call) -> None: ...


class OpenPurse:
    """No limit, and no accounts."""

    def reserve(self, model: str, purpose: str, largest: Largest) -> str:
        """See `Purse`."""
        return ""

    def settle(self, token: str, call: Call) -> None:
        """See `Purse`."""
