"""A Verifier's answer, checked: JSON of a known shape whose line is one of the candidate's."""

from __future__ import annotations

from typing import Any

from apps.agents.words import Attempt, Diagnosis
from apps.agents.writers.objects import object_in, text_of
from apps.agents.writers.unusable import Unusable

_LONGEST = 600  # characters of a text: the repair's prompt carries both


def diagnosis_in(answer: str, failed: Attempt) -> Diagnosis:
    """The diagnosis that an answer gives of a version. Raises `Unusable`, which says what is wrong with the answer."""
    data = object_in(answer, {"wrong", "line", "change"})
    if data is None:
        raise Unusable("it holds no JSON object with `wrong`, `line` and `change`")
    texts = {name: text_of(data, name, _LONGEST) for name in ("wrong", "change")}
    if missing := [f"`{name}`" for name, text in texts.items() if not text]:
        raise Unusable(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return Diagnosis(failed.number, texts["wrong"], _line(data, failed.writing.source.splitlines()), texts["change"])


def _line(data: dict[str, Any], lines: list[str]) -> int:
    value = data.get("line")
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unusable("`line` is no line's number")
    if not 1 <= value <= len(lines):
        raise Unusable(f"`line` is {value}, and the candidate has lines 1 to {len(lines)}")
    if not lines[value - 1].strip():
        raise Unusable(f"line {value} of the candidate is empty. Name the line to change")
    return value
