"""Coders by name, as Launch and the command line know them: each comes with the Conductor that reasons for it."""

from __future__ import annotations

from typing import NamedTuple

from apps.agents.ports import Coder, Conductor

BUILTIN = "builtin"


class UnknownCoder(ValueError):
    """No coder of that name can work here; the message says which can."""


class Pair(NamedTuple):
    """Who writes, and who reasons from the profile."""

    coder: Coder
    conductor: Conductor


def check_coder(name: str) -> None:
    """Raise `UnknownCoder` unless `coder_named` would give one. Loads nothing, so that a page may ask."""
    if name != BUILTIN:
        raise UnknownCoder(
            f"There is no coder {name!r}. Models as coders are not part of this version; use {BUILTIN!r}, which needs none."
        )


def coder_named(name: str) -> Pair:
    """The coder of that name with its Conductor. Raises `UnknownCoder`."""
    check_coder(name)
    from apps.agents.builtin import BuiltinCoder, BuiltinConductor

    return Pair(BuiltinCoder(), BuiltinConductor())
