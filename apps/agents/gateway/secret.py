"""Keys that can't be shown by accident, and texts freed of them.

A model's server may echo a key in an error, in a header, or in the answer itself; what comes from it is scrubbed before
it is said, kept or raised.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable
from typing import NoReturn
from urllib.parse import quote, unquote, urlsplit

SHOWN = "***"
# Shorter than this a secret would turn up in texts that have nothing to do with it.
SHORTEST = 6
_NAMES_OF_SECRETS = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL)S?$")
_SHORTEST_IN_ENVIRONMENT = 12
# What is no secret of ours and yet must not be kept: credentials as headers and addresses carry them.
_CARRIED = re.compile(
    r"(?i)((?:authorization|x-api-key|api-key)['\"]?\s*[:=]\s*['\"]?(?:bearer\s+|basic\s+)?"
    r"|[?&](?:key|api_key|apikey|access_token|token)=)[^\s'\"&,}]+"
)


class Secret:
    """A key. Its text is `***` everywhere; `reveal` alone gives it, for the call that needs it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value.strip()

    def reveal(self) -> str:
        """The key itself."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __str__(self) -> str:
        return SHOWN

    def __repr__(self) -> str:
        return f"Secret({SHOWN})"

    def __format__(self, specification: str) -> str:
        return format(SHOWN, specification)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("A secret is not to be stored or sent.")


def from_environment(name: str) -> Secret | None:
    """The key that the environment holds under that name, or None."""
    value = os.environ.get(name, "").strip()
    return Secret(value) if value else None


def in_address(address: str | None) -> tuple[Secret, ...]:
    """What an address carries that nobody should see: the password before its host, and its query's values."""
    if not address:
        return ()
    parts = urlsplit(address)
    found = [parts.password] if parts.password else []
    found += [pair.partition("=")[2] for pair in parts.query.split("&")]
    return tuple(Secret(unquote(one)) for one in found if one)


def shown_address(address: str) -> str:
    """An address without user, password and query."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if parts.scheme else address.partition("?")[0]


class Scrubber:
    """Replaces secrets, as they are and as they are commonly encoded, in whole texts and in streams.

    Secrets of this process's environment (whatever is called KEY, TOKEN, SECRET or PASSWORD) count as well.
    """

    def __init__(self, secrets: Iterable[Secret]) -> None:
        named = [
            Secret(value)
            for name, value in os.environ.items()
            if _NAMES_OF_SECRETS.search(name.upper()) and len(value) >= _SHORTEST_IN_ENVIRONMENT
        ]
        forms = {form for secret in (*secrets, *named) for form in _forms(secret.reveal())}
        self._forms = sorted(forms, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """The text without any secret, and without credentials in headers and addresses."""
        return _CARRIED.sub(rf"\1{SHOWN}", self.without_secrets(text))

    def without_secrets(self, text: str) -> str:
        """The text without any secret, otherwise untouched: for source code, which may speak of keys of its own."""
        for form in self._forms:
            text = text.replace(form, SHOWN)
        return text

    def settled(self, text: str) -> int:
        """How much of a text can be cleaned now: its end may be the beginning of a secret. Never cuts a whole one."""
        settled = len(text) - self._unfinished(text)
        for form in self._forms:
            at = text.rfind(form, 0, settled + len(form) - 1)
            if at >= 0 and at < settled < at + len(form):
                settled = at + len(form)
        return settled

    def _unfinished(self, text: str) -> int:
        """How many characters at the end of a text begin a secret without being all of it."""
        longest = 0
        for form in self._forms:
            for length in range(min(len(form) - 1, len(text)), longest, -1):
                if text.endswith(form[:length]):
                    longest = length
                    break
        return longest


class ScrubbedStream:
    """A stream's text freed of secrets, also of one that comes in pieces: what may be its beginning is held back."""

    def __init__(self, scrubber: Scrubber) -> None:
        self._scrubber = scrubber
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be shown now that `piece` has come."""
        text = self._held + piece
        shown = self._scrubber.settled(text)
        self._held = text[shown:]
        return self._scrubber.without_secrets(text[:shown])

    def flush(self) -> str:
        """What was held back, at the end of the stream."""
        held, self._held = self._held, ""
        return self._scrubber.without_secrets(held)


def _forms(secret: str) -> set[str]:
    if len(secret) < SHORTEST:
        return set()
    encoded = base64.b64encode(secret.encode()).decode()
    forms = {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], encoded, encoded.rstrip("=")}
    # A server that shortens what it echoes leaves most of it readable.
    return forms | ({secret[:-4]} if len(secret) >= 16 else set())
