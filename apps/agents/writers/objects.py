"""A JSON object out of what a model said, read tolerantly: among prose, in fences, with commas too many."""

from __future__ import annotations

import json
import re
from collections.abc import Set
from typing import Any

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


def object_in(answer: str, keys: Set[str]) -> dict[str, Any] | None:
    """The last JSON object of an answer that has one of the keys, or None. What the model only thought doesn't count."""
    text = _THOUGHT.sub("", answer)
    decoder, found = json.JSONDecoder(strict=False), None
    for candidate in (text, _TRAILING_COMMA.sub(r"\1", text)):
        at = candidate.find("{")
        while at >= 0:
            try:
                data, end = decoder.raw_decode(candidate, at)
            except (ValueError, RecursionError):
                at = candidate.find("{", at + 1)
                continue
            if isinstance(data, dict) and data.keys() & keys:
                found = data
            at = candidate.find("{", end)
        if found is not None:
            return found
    return None


def text_of(data: dict[str, Any], name: str, longest: int) -> str:
    """A text of the object, at most so many characters of it; empty where there is none."""
    value = data.get(name)
    return value.strip()[:longest] if isinstance(value, str) else ""
