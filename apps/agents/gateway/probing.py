"""Trying a model out: one short question, and what exactly is wrong where it is not answered."""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic

from apps.agents.gateway.asking import Gateway
from apps.agents.gateway.faults import CallFailed, Fault
from apps.agents.gateway.purse import Message, Purse, Question
from apps.agents.gateway.settings import ModelSettings
from apps.agents.gateway.streaming import Heed
from apps.agents.words import Usage

_QUESTION = Question((Message("user", "Answer with the one word: ready"),), "probe", 0.0)
# Enough for a model that reasons before it answers.
_ANSWER_TOKENS = 2000


@dataclass(frozen=True)
class Probe:
    """How a model answered. Where `fault` is set, `message` says what to do; otherwise what it said first."""

    fault: Fault | None
    message: str
    seconds: float
    first_text_seconds: float | None
    usage: Usage

    @property
    def well(self) -> bool:
        """Whether the model can be used."""
        return self.fault is None


def probe(
    settings: ModelSettings, *, seconds: float = 30.0, heed: Heed = lambda: None, purse: Purse | None = None
) -> Probe:
    """Ask the model one word, once, within `seconds`."""
    hasty = replace(settings, tries=1, read_seconds=seconds, wall_seconds=seconds, answer_tokens=_ANSWER_TOKENS)
    began, heard = monotonic(), list[float]()
    try:
        answer = Gateway(hasty, heed=heed, purse=purse).ask(_QUESTION, lambda text: heard.append(monotonic() - began))
    except CallFailed as failed:
        return Probe(failed.fault, str(failed), monotonic() - began, heard[0] if heard else None, failed.usage)
    return Probe(None, f"It answers: {answer.text.strip()[:80]}", monotonic() - began, heard[0], answer.usage)
