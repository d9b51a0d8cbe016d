"""A model as PRAGMA may use it: its name, its address, its key, its prices and its patience."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from apps.agents.gateway.secret import Secret, in_address, shown_address


@dataclass(frozen=True)
class ModelSettings:
    """Everything needed to ask one model.

    `name` is litellm's: PROVIDER/MODEL, with `openai/` for any server that speaks OpenAI's protocol; `api_base` is that
    server's address up to `/v1`. Without a `key` none is sent. Where `context_tokens`, `answer_tokens` and the prices (USD
    for a million tokens) are None, litellm's own list is asked; what it doesn't know either stays unknown.
    `label` is what the team calls the model (else its name). `temperatures` are the Coder's for an iteration's candidates in
    order, the last one repeated; `temperature`, where set, is used for every question, as some models take one only.
    `read_seconds` is the longest silence, `wall_seconds` the longest call, `longest_wait_seconds` the longest pause that
    a server may ask for before the next of `tries`. `at_once` is how many questions a run asks it at the same time.
    """

    name: str
    api_base: str | None = None
    key: Secret | None = None
    context_tokens: int | None = None
    answer_tokens: int | None = None
    usd_per_million_in: float | None = None
    usd_per_million_out: float | None = None
    temperature: float | None = None
    temperatures: tuple[float, ...] = ()
    read_seconds: float = 300.0  # some models reason for minutes without a word
    wall_seconds: float = 1200.0
    tries: int = 5
    longest_wait_seconds: float = 120.0
    at_once: int = 4
    label: str = ""

    @property
    def called(self) -> str:
        """What people call it."""
        return self.label or self.name

    @property
    def address(self) -> str:
        """Where the model is asked, as it may be shown."""
        return shown_address(self.api_base) if self.api_base else f"{self.name.partition('/')[0]}'s own address"

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """What must not be seen anywhere: the key, and what the address carries."""
        return (*((self.key,) if self.key else ()), *in_address(self.api_base))

    def __repr__(self) -> str:
        return f"ModelSettings({self.name!r} at {self.address})"


class ModelRegistry(Protocol):
    """Who knows the models that may be used here: their settings by name, or None where there is no such model."""

    def settings(self, name: str) -> ModelSettings | None: ...
