"""Coders by name, as Launch and the command line know them: each comes with those who reason for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from apps.agents.gateway.purse import Purse
from apps.agents.gateway.settings import ModelSettings
from apps.agents.ports import Coder, Conductor, Verifier

BUILTIN = "builtin"


class UnknownCoder(ValueError):
    """No coder of that name can work here; the message says which can."""


class Pair(NamedTuple):
    """Who writes, who reasons from the profile and, with a model, who reads failures."""

    coder: Coder
    conductor: Conductor
    verifier: Verifier | None = None


def check_coder(name: str) -> None:
    """Raise `UnknownCoder` unless `coder_named` gives one without a model's settings. Loads nothing."""
    if name != BUILTIN:
        raise UnknownCoder(f"{name!r} is no coder that works without a model; use {BUILTIN!r}, which needs none.")


def coder_named(
    name: str,
    model: ModelSettings | None = None,
    *,
    heed: Callable[[], None] = lambda: None,
    purse: Purse | None = None,
) -> Pair:
    """The coder of that name with its Conductor. Raises `UnknownCoder`.

    A model is used where its settings are given: `heed` is called several times a second while it is asked and raises
    to end the call, `purse` keeps what may be spent (`apps.agents.gateway`).
    """
    if model is not None:
        return _model(name, model, heed, purse)
    check_coder(name)
    from apps.agents.builtin import BuiltinCoder, BuiltinConductor

    return Pair(BuiltinCoder(), BuiltinConductor())


def _model(name: str, model: ModelSettings, heed: Callable[[], None], purse: Purse | None) -> Pair:
    if name != model.called:
        raise UnknownCoder(f"The settings given for {name!r} are those of {model.called!r}.")
    from apps.agents.gateway.asking import Gateway
    from apps.agents.writers.coder import ModelCoder
    from apps.agents.writers.conductor import ModelConductor
    from apps.agents.writers.verifier import ModelVerifier

    gateway = Gateway(model, heed=heed, purse=purse)
    return Pair(ModelCoder(gateway), ModelConductor(gateway), ModelVerifier(gateway))
