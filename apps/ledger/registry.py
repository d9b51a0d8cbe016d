"""The team's models by name, as whoever launches, estimates or asks needs them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from decimal import Decimal

from apps.agents.gateway.secret import Secret
from apps.agents.gateway.settings import ModelSettings
from apps.kernels.plain import BadPlain, from_plain
from apps.ledger import sealing
from apps.ledger.models import KeySource, LanguageModel
from apps.people.refusals import Refused


class ModelRefused(Refused):
    """No model of that name may be called now; the message says which may, and what to do."""

    faulty = True


class NoKey(Refused):
    """The model's key is not to be had in this process."""


@dataclass(frozen=True)
class Listed:
    """What litellm's list knows of a model; prices are USD for a million tokens, None where it knows none."""

    context_tokens: int | None = None
    answer_tokens: int | None = None
    usd_per_million_in: float | None = None
    usd_per_million_out: float | None = None


@dataclass(frozen=True)
class Terms:
    """What a model takes and costs as far as this database knows: what was typed, else what litellm lists.

    `tried` says whether litellm was asked at all, so that an unknown price can be told from one not looked up yet.
    """

    context_tokens: int | None
    answer_tokens: int | None
    usd_per_million_in: Decimal | None
    usd_per_million_out: Decimal | None
    tried: bool

    @property
    def is_priced(self) -> bool:
        """Whether both prices are known."""
        return self.usd_per_million_in is not None and self.usd_per_million_out is not None

    def cost(self, tokens_in: int, tokens_out: int) -> Decimal | None:
        """USD for so many tokens, or None."""
        if self.usd_per_million_in is None or self.usd_per_million_out is None:
            return None
        return (tokens_in * self.usd_per_million_in + tokens_out * self.usd_per_million_out) / 1_000_000


def enabled() -> list[LanguageModel]:
    """The models that may be called, by name."""
    return list(LanguageModel.objects.filter(enabled=True).order_by("name"))


def usable(name: str) -> LanguageModel:
    """The model of that name, if it may be called. Raises `ModelRefused`."""
    model = LanguageModel.objects.filter(name=name).first()
    if model is not None and model.enabled:
        return model
    others = ", ".join(("builtin", *(one.name for one in enabled())))
    if model is not None:
        raise ModelRefused(f"{name} is switched off. An admin can switch it on under Settings › Models, or choose one of: "
                           f"{others}.", "coder")  # fmt: skip
    raise ModelRefused(
        f"There is no coder {name!r}. There are: {others}. An admin adds a model under Settings › Models; "
        "or use 'builtin', which needs none.",
        "coder",
    )


def settings_of(model: LanguageModel) -> ModelSettings:
    """The model as the gateway asks it, with its key. Raises `NoKey` and what `sealing.opened` raises."""
    priced = model.has_price
    single = model.temperatures[0] if len(model.temperatures) == 1 else None
    return ModelSettings(
        name=model.model_id,
        label=model.name,
        api_base=model.api_base or None,
        key=_key(model),
        context_tokens=model.context_tokens,
        answer_tokens=model.answer_tokens,
        usd_per_million_in=float(model.usd_per_million_in) if priced and model.usd_per_million_in is not None else None,
        usd_per_million_out=float(model.usd_per_million_out)
        if priced and model.usd_per_million_out is not None
        else None,
        temperature=single,
        temperatures=tuple(model.temperatures) if single is None else (),
        read_seconds=float(model.silence_seconds),
        wall_seconds=float(model.call_seconds),
        at_once=model.at_once,
    )


def terms_of(model: LanguageModel) -> Terms:
    """What this database knows of its context and price."""
    listed = listed_of(model)
    known = listed or Listed()
    prices = (
        (model.usd_per_million_in, model.usd_per_million_out)
        if model.has_price
        else (_decimal(known.usd_per_million_in), _decimal(known.usd_per_million_out))
    )
    return Terms(
        model.context_tokens or known.context_tokens,
        model.answer_tokens or known.answer_tokens,
        *prices,
        tried=listed is not None,
    )


def listed_of(model: LanguageModel) -> Listed | None:
    """What litellm listed when the model was last tried; None before."""
    try:
        return from_plain(Listed, model.listed) if model.listed is not None else None
    except BadPlain:
        return None


def _key(model: LanguageModel) -> Secret | None:
    match model.key_source:
        case KeySource.VARIABLE:
            value = os.environ.get(model.key_variable, "").strip()
            if not value:
                raise NoKey(
                    f"Key: the environment variable {model.key_variable}, which should hold the key of {model.name}, is not "
                    "set where the agents worker runs. Set it there and start PRAGMA again, or keep the key here."
                )
            return Secret(value)
        case KeySource.KEPT:
            return sealing.opened(model.key_sealed, model.name)
    return None


def _decimal(value: float | None) -> Decimal | None:
    return None if value is None else Decimal(str(value))
