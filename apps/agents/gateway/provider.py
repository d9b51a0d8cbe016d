"""litellm, loaded when it is first needed, and what its list knows of a model: context, longest answer, prices."""

from __future__ import annotations

import functools
import logging
import os
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from apps.agents.gateway.purse import Largest, Question
from apps.agents.gateway.settings import ModelSettings
from apps.agents.words import Usage

# For a model that nobody has said anything about; a small local server holds at least this.
UNKNOWN_CONTEXT = 16_384
MOST_ANSWER = 32_000
# Characters of code and English a token stands for. The first to estimate with, the second so as not to underestimate.
CHARACTERS_A_TOKEN = 3.5
FEWEST_CHARACTERS_A_TOKEN = 2.5


@functools.cache
def litellm() -> Any:
    """litellm, told to keep to itself: no price list from the network, no tokenizers, no advertising, no log lines."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import litellm as module

    module.suppress_debug_info = True
    module.disable_hf_tokenizer_download = True
    module.telemetry = False
    module.drop_params = True
    # Its errors are raised as well; its log lines quote what servers say, and httpx's hold addresses with their query.
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "litellm"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    for name in ("httpx", "httpcore", "openai"):
        logging.getLogger(name).setLevel(logging.WARNING)
    _warm(module)
    return module


def _warm(module: Any) -> None:
    """One call that goes nowhere: what litellm loads with its first call would otherwise count as that call's silence."""
    messages = [{"role": "user", "content": "ready?"}]
    try:
        for _ in module.completion(model="openai/none", messages=messages, mock_response="ready", stream=True):
            pass
    except Exception:
        logging.getLogger(__name__).info("litellm could not be warmed up", exc_info=True)


@dataclass(frozen=True)
class Terms:
    """What a model takes and costs. Prices are USD a token, None where unknown."""

    context_tokens: int
    answer_tokens: int
    usd_in: float | None
    usd_out: float | None

    @property
    def prompt_characters(self) -> int:
        """How long a prompt may be so that the longest answer still fits in, counted carefully."""
        return int((self.context_tokens - self.answer_tokens) * 0.95 * FEWEST_CHARACTERS_A_TOKEN)

    def cost(self, tokens_in: int, tokens_out: int) -> float | None:
        """USD for so many tokens, or None."""
        if self.usd_in is None or self.usd_out is None:
            return None
        return tokens_in * self.usd_in + tokens_out * self.usd_out


@dataclass(frozen=True)
class Listed:
    """What litellm's list says of a model, None where it says nothing; prices are USD a token."""

    context_tokens: int | None
    answer_tokens: int | None
    usd_in: float | None
    usd_out: float | None


def listed(name: str, api_base: str | None) -> Listed:
    """The list's entry of that model at that address."""
    entry = _listed(ModelSettings(name, api_base))
    return Listed(
        _whole(entry.get("max_input_tokens")),
        _whole(entry.get("max_output_tokens")),
        _price(entry, "input_cost_per_token"),
        _price(entry, "output_cost_per_token"),
    )


def terms(settings: ModelSettings) -> Terms:
    """The settings' own terms, and litellm's list for what they leave open."""
    known = listed(settings.name, settings.api_base)
    context = settings.context_tokens or known.context_tokens or UNKNOWN_CONTEXT
    longest = known.answer_tokens or MOST_ANSWER
    # Half of a small context for the answer: a kernel is about as long as the best version that is shown in the prompt.
    answer = min(settings.answer_tokens or min(longest, MOST_ANSWER), max(1, context // 2))
    own = settings.usd_per_million_in is not None and settings.usd_per_million_out is not None
    if own:
        prices = (settings.usd_per_million_in or 0.0) / 1e6, (settings.usd_per_million_out or 0.0) / 1e6
        return Terms(context, answer, *prices)
    return Terms(context, answer, known.usd_in, known.usd_out)


def usage_of(settings: ModelSettings, counted: Any, seconds: float) -> Usage:
    """What a call took by the server's own count. Discounts for cached prompts are litellm's to know."""
    tokens_in, tokens_out = int(counted.prompt_tokens or 0), int(counted.completion_tokens or 0)
    cost = terms(settings).cost(tokens_in, tokens_out)
    if cost is not None and settings.usd_per_million_in is None:
        provider, _, bare = settings.name.partition("/")
        try:
            cost = sum(litellm().cost_per_token(model=bare, custom_llm_provider=provider, usage_object=counted))
        except Exception:  # a list that knows a price and can't apply it: the plain product stands
            logging.getLogger(__name__).info("No discounts known for %s", settings.name)
    return Usage(
        seconds,
        settings.name,
        tokens_in,
        tokens_out,
        cost,
        tokens_cached=_detail(counted, "prompt_tokens_details", "cached_tokens"),
        tokens_reasoning=_detail(counted, "completion_tokens_details", "reasoning_tokens"),
    )


def _detail(counted: Any, of: str, name: str) -> int | None:
    """A part of the tokens, where the server tells it."""
    value = getattr(getattr(counted, of, None), name, None)
    return int(value) if isinstance(value, int) else None


def estimated(settings: ModelSettings, asked: int, answered: int, seconds: float) -> Usage:
    """What a call took, by the number of characters: for servers that count nothing, and for broken streams."""
    tokens_in, tokens_out = round(asked / CHARACTERS_A_TOKEN), round(answered / CHARACTERS_A_TOKEN)
    cost = terms(settings).cost(tokens_in, tokens_out)
    return Usage(seconds, settings.name, tokens_in, tokens_out, cost, estimated=True)


def longest_answer(settings: ModelSettings, question: Question) -> int:
    """Tokens that the answer to this question may have."""
    longest = terms(settings).answer_tokens
    return longest if question.answer_tokens is None else min(longest, question.answer_tokens)


def largest(settings: ModelSettings, question: Question) -> Largest:
    """The most a question can take."""
    prompt, answer = ceil(question.characters / FEWEST_CHARACTERS_A_TOKEN), longest_answer(settings, question)
    return Largest(terms(settings).cost(prompt, answer), prompt + answer)


def added(one: Usage, other: Usage) -> Usage:
    """Two calls as one; what is unknown of either is unknown of both, except for calls never made."""
    if one.model is None or other.model is None:
        called = other if one.model is None else one
        return replace(called, seconds=one.seconds + other.seconds)
    return Usage(
        one.seconds + other.seconds,
        other.model,
        _sum(one.tokens_in, other.tokens_in),
        _sum(one.tokens_out, other.tokens_out),
        None if one.cost_usd is None or other.cost_usd is None else one.cost_usd + other.cost_usd,
        one.estimated or other.estimated,
        _told(one.tokens_cached, other.tokens_cached),
        _told(one.tokens_reasoning, other.tokens_reasoning),
    )


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _told(one: int | None, other: int | None) -> int | None:
    """The sum of what was told; a call that told nothing counts as none of it."""
    return None if one is None and other is None else (one or 0) + (other or 0)


def _listed(settings: ModelSettings) -> dict[str, Any]:
    """litellm's entry for the model, or nothing. A server of one's own may call any model by any name: it has none."""
    table: dict[str, dict[str, Any]] = litellm().model_cost
    provider, _, bare = settings.name.partition("/")
    entry = table.get(settings.name)
    if entry is None and settings.api_base is None:
        entry = table.get(bare)
        entry = entry if entry is not None and entry.get("litellm_provider") == provider else None
    return entry or {}


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value > 0 else None


def _price(listed: dict[str, Any], name: str) -> float | None:
    value = listed.get(name)
    return float(value) if isinstance(value, int | float) else None
