"""The problems PRAGMA comes with, as rows: listed in problems/index.toml, taken in again whenever a file changes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from apps.runs import problems
from apps.runs.models import Origin, Problem


@dataclass(frozen=True)
class Starter:
    """One file of the index. `title` is empty where the file isn't listed."""

    path: Path
    title: str = ""
    level: int | None = None
    category: str = ""


def starters(folder: Path) -> Iterator[Starter]:
    """The listed problems in their order, then those that nobody listed."""
    index = folder / "index.toml"
    listed = tomllib.loads(index.read_text()).get("problem", []) if index.exists() else []
    seen = set()
    for entry in listed:
        path = folder / entry["path"]
        seen.add(path)
        yield Starter(path, entry.get("title", ""), entry.get("level"), entry.get("category", path.parent.name))
    for path in sorted(folder.rglob("*.py")):
        if path not in seen:
            yield Starter(path, path.stem.replace("_", " ").capitalize(), category=path.parent.name)


def load(folder: Path) -> list[Problem]:
    """Take all of them in. What an older version of a file was stays for its runs, out of the lists."""
    loaded = []
    for starter in starters(folder):
        problem = problems.add(
            None,
            starter.path.read_text(),
            title=starter.title,
            level=starter.level,
            category=starter.category,
            origin=Origin.STARTER,
            look=False,
        )
        loaded.append(problem)
    current = [problem.pk for problem in loaded]
    Problem.objects.filter(origin=Origin.STARTER, hidden=False).exclude(pk__in=current).update(hidden=True)
    for problem in loaded:
        problems.sizing_of(problem, {})
    problems.look_at_unchecked()
    return loaded
