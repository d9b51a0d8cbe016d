"""What goes into a prompt when not all of it fits: fixed rules, so that a resumed run asks the same again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from apps.agents.words import CannotWrite

_LEFT_OUT = "[... {lines} lines left out ...]"


class Keep(StrEnum):
    """Which part of a text says most."""

    ALL = "all"
    START = "start"
    END = "end"
    NOTHING = "nothing"  # a part of it would mislead: all or none


@dataclass(frozen=True)
class Section:
    """One text of a prompt. `rank` says how soon it gives way: the highest first."""

    name: str
    text: str
    keep: Keep
    rank: int = 0


class DoesNotFit(CannotWrite):
    """What can't be left out is longer than the model's context."""


def fitted(sections: Sequence[Section], characters: int) -> dict[str, str]:
    """Every section's text, all of them together at most `characters` long.

    The section of the highest rank gives way first, as far as is needed, then the next. Raises `DoesNotFit`.
    """
    texts = {section.name: section.text for section in sections}
    for section in sorted(sections, key=lambda one: -one.rank):
        excess = sum(map(len, texts.values())) - characters
        if excess <= 0:
            break
        texts[section.name] = _shortened(section, max(0, len(section.text) - excess))
    if (length := sum(map(len, texts.values()))) > characters:
        raise DoesNotFit(
            f"The problem and what must be said of it take {length} characters, and the model's context has room for "
            f"{max(characters, 0)}. Use a model with a larger context."
        )
    return texts


def _shortened(section: Section, room: int) -> str:
    if section.keep is Keep.ALL:
        return section.text
    if section.keep is Keep.NOTHING:
        return ""
    lines = section.text.splitlines()
    ordered = lines if section.keep is Keep.START else lines[::-1]
    kept: list[str] = []
    left = room - len(_LEFT_OUT) - 8
    for line in ordered:
        left -= len(line) + 1
        if left < 0:
            break
        kept.append(line)
    if not kept:
        return ""
    mark = _LEFT_OUT.format(lines=len(lines) - len(kept))
    return "\n".join([*kept, mark] if section.keep is Keep.START else [mark, *kept[::-1]]) + "\n"
