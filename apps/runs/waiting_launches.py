"""Launches that wait for a host's look at their problem: the whole form as it was sent, kept in the person's session.

An address can't hold it: a candidate alone may have a quarter of a megabyte.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from django.contrib.sessions.backends.base import SessionBase

_NAME = "launches"
_MOST = 4  # of one session: a fifth pushes the oldest out
_NEVER = frozenset(("csrfmiddlewaretoken", "kept", "do", "file", "own_file", "draft", "sized", "tested"))


def keep(session: SessionBase, form: Mapping[str, str]) -> str:
    """Keep the form; the key that gets it back."""
    kept = dict(session.get(_NAME, {}))
    key = secrets.token_hex(4)
    kept[key] = {name: str(value) for name, value in form.items() if name not in _NEVER and value}
    for old in list(kept)[:-_MOST]:
        del kept[old]
    session[_NAME] = kept
    return key


def kept(session: SessionBase, key: str) -> dict[str, str]:
    """The form with that key; empty where it is not there any more."""
    found = session.get(_NAME, {}).get(key, {})
    return dict(found)


def forget(session: SessionBase, key: str) -> None:
    """It has been launched."""
    waiting = dict(session.get(_NAME, {}))
    if waiting.pop(key, None) is not None:
        session[_NAME] = waiting
