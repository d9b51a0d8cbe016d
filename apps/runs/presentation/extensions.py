"""What rooms above add to the pages of runs and problems. Each registers from its AppConfig's `ready`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.runs.models import Problem, Version


@dataclass(frozen=True)
class Anchor:
    """Something a version can be held against on Compare: `find` gives it, or None where there is none for that version."""

    key: str
    title: str
    find: Callable[[Version], Version | None]


@dataclass(frozen=True)
class Panel:
    """A template shown in a named place of a page; `context` gives what it needs, or None where it shows nothing."""

    place: str
    template: str
    context: Callable[[Any, Any], dict[str, Any] | None]


@dataclass(frozen=True)
class Cell:
    """What a column says of one problem: a word, where it leads, and what is said on hover."""

    text: str
    address: str = ""
    hint: str = ""


@dataclass(frozen=True)
class ProblemColumn:
    """One more column of the list of problems: `cells` gives what it says by problem key, in a fixed number of queries."""

    name: str
    title: str
    cells: Callable[[Sequence[Problem]], Mapping[int, Cell]]


anchors: dict[str, Anchor] = {}
panels: dict[tuple[str, str], Panel] = {}
problem_columns: dict[str, ProblemColumn] = {}


def add_anchor(anchor: Anchor) -> None:
    """Offer it on Compare and on each version's page. Registering a key again replaces it."""
    anchors[anchor.key] = anchor


def add_panel(panel: Panel) -> None:
    """Show it in its place."""
    panels[panel.place, panel.template] = panel


def add_problem_column(column: ProblemColumn) -> None:
    """Show it in the list of problems."""
    problem_columns[column.name] = column


def anchors_of(version: Version) -> list[tuple[Anchor, Version]]:
    """The anchors that exist for a version, itself left out."""
    found = [(anchor, anchor.find(version)) for anchor in anchors.values()]
    return [(anchor, other) for anchor, other in found if other is not None and other.pk != version.pk]
