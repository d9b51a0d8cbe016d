"""How a call of a model can fail, in words that tell a person what to do.

litellm's exceptions carry the server's text, which may hold anything, a key included: only what is scrubbed leaves here.
"""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from enum import StrEnum
from time import time

from apps.agents.gateway.secret import Scrubber
from apps.agents.gateway.settings import ModelSettings
from apps.agents.words import Usage

_LONGEST_QUOTE = 300
_QUOTA = re.compile(
    r"insufficient_quota|exceeded your current quota|credit balance|billing|out of credits|payment", re.I
)
_NO_CREDENTIALS = re.compile(r"Missing credentials|Missing \w+ API Key|api_key.*must be set", re.I)
_PREFIXES = re.compile(r"^(litellm\.\w+:\s*|\w+(?:Error|Exception)\s*(?:-|:)\s*|Error code: \d+\s*-?\s*)+")


class Fault(StrEnum):
    """What was wrong. Of the first five nothing changes by asking again."""

    KEY = "key"
    NAME = "name"
    QUOTA = "quota"
    LIMIT = "limit"  # ours: what this run or person may spend
    TOO_LONG = "too_long"
    REFUSED = "refused"
    ADDRESS = "address"
    TIME_OUT = "time_out"
    BUSY = "busy"
    SERVER = "server"
    BROKEN = "broken"
    EMPTY = "empty"
    STRANGE = "strange"

    @property
    def may_pass(self) -> bool:
        """Whether asking again may help."""
        return self in (
            Fault.ADDRESS, Fault.TIME_OUT, Fault.BUSY, Fault.SERVER, Fault.BROKEN, Fault.EMPTY,
        )  # fmt: skip

    @property
    def ends_run(self) -> bool:
        """Whether no other question to this model can succeed either."""
        return self in (Fault.KEY, Fault.NAME, Fault.QUOTA, Fault.LIMIT, Fault.ADDRESS)


class CallFailed(Exception):
    """A model gave no answer. The message is for people, free of secrets; `usage` is what it took all the same."""

    def __init__(
        self,
        fault: Fault,
        message: str,
        *,
        wait: float | None = None,
        usage: Usage | None = None,
        text: str = "",
        again: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.may_pass = fault.may_pass if again is None else again
        self.wait = wait  # seconds the server asks to wait
        self.usage = usage or Usage()
        self.text = text


def fault_of(problem: Exception, settings: ModelSettings, scrubber: Scrubber) -> CallFailed:
    """What an exception of litellm's means. Its chain is not kept: the texts in it are not scrubbed."""
    fault = _kind(_innermost(problem))
    said = _quoted(problem, scrubber)
    return CallFailed(fault, _message(fault, settings, said), wait=_asked_wait(problem))


def _innermost(problem: Exception) -> Exception:
    original = getattr(problem, "original_exception", None)
    return original if isinstance(original, Exception) else problem


def _kind(problem: Exception) -> Fault:
    # What kind of error a server means often stands only in the `code` of its answer's body, which litellm leaves out.
    text = f"{problem} {getattr(problem, 'body', None) or ''}"
    kinds = {kind.__name__ for kind in type(problem).__mro__}
    status = getattr(problem, "status_code", None)
    if "Timeout" in kinds or "APITimeoutError" in kinds or isinstance(problem, TimeoutError):
        return Fault.TIME_OUT
    if status in (401, 403) or _NO_CREDENTIALS.search(text):
        return Fault.KEY
    if status == 402 or (status in (400, 429) and _QUOTA.search(text)):
        return Fault.QUOTA
    if "ContextWindowExceededError" in kinds or status == 413:
        return Fault.TOO_LONG
    if "ContentPolicyViolationError" in kinds:
        return Fault.REFUSED
    if status == 404 or "LLM Provider NOT provided" in text:
        return Fault.NAME
    if status == 429:
        return Fault.BUSY
    if re.search(r"Connection error|Cannot connect|Name or service|nodename|ConnectError|Missing.*https?://", text):
        return Fault.ADDRESS
    if "APIConnectionError" in kinds or "MidStreamFallbackError" in kinds:
        return Fault.BROKEN
    return Fault.SERVER if isinstance(status, int) and status >= 500 else Fault.STRANGE


def _message(fault: Fault, settings: ModelSettings, said: str) -> str:
    name, address = settings.name, settings.address
    told = f" It said: {said}" if said else ""
    words = {
        Fault.KEY: f"Key: {address} does not accept the key for {name}. Check the key and what it may be used for.{told}"
        if settings.key
        else f"Key: {address} wants a key for {name}, and none is set.{told}",
        Fault.NAME: f"Name: {address} knows no model {name!r}. Check its name (PROVIDER/MODEL), and that the address "
        f"ends where the server's does, often in /v1.{told}",
        Fault.QUOTA: f"Quota: the account at {address} has nothing left to spend. Add credit or raise its limit.{told}",
        Fault.TOO_LONG: f"{name} does not take a prompt of this length. Set its context smaller.{told}",
        Fault.REFUSED: f"{name} refuses to answer this.{told}",
        Fault.ADDRESS: f"Address: nothing answers at {address}. Check the address, and that the server runs and can be "
        f"reached from here.{told}",
        Fault.TIME_OUT: f"Time-out: {address} was silent for too long.",
        Fault.BUSY: f"Quota: {address} takes no more questions for the moment.{told}",
        Fault.SERVER: f"The server at {address} failed.{told}",
        Fault.BROKEN: f"The stream from {address} broke off.{told}",
        Fault.STRANGE: f"{address} answered in a way that can't be read.{told}",
    }
    return words[fault]


def _quoted(problem: Exception, scrubber: Scrubber) -> str:
    text = _PREFIXES.sub("", str(problem).partition("Original exception:")[0].strip())
    text = " ".join(scrubber.clean(text).split())
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]} ..."


def _asked_wait(problem: Exception) -> float | None:
    """Seconds that the server's Retry-After asks for, as a number or as a date."""
    headers = getattr(getattr(problem, "response", None), "headers", None) or {}
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except ValueError:
        return None
