"""Prompts as files: a version of them is a folder of `apps/agents/prompts`, which a run pins."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from string import Template

from apps.agents.words import CannotWrite
from apps.kernels.evaluation import Language
from apps.kernels.machine import HostReport

_FOLDER = Path(__file__).resolve().parent.parent / "prompts"


class NoPrompts(CannotWrite):
    """There are no prompts of that version, or none for that language."""


@dataclass(frozen=True)
class Explained:
    """A metric's meaning, and what a well-written kernel shows of it (empty where any value is normal)."""

    meaning: str
    normal: str


class Prompts:
    """One version of the prompts."""

    def __init__(self, version: str) -> None:
        self._folder = _FOLDER / f"v{version}"
        if not version.isalnum() or not self._folder.is_dir():
            raise NoPrompts(f"There are no prompts of version {version!r}.")

    def fill(self, name: str, **texts: str) -> str:
        """A prompt with its words filled in. Raises `KeyError` where one is missing."""
        return Template(_read(self._folder / name)).substitute(texts)

    def house(self, language: Language) -> str:
        """The house style of a language, with its example."""
        if not (self._folder / f"house_{language}.md").exists():
            raise NoPrompts(f"Models can't write {language} yet: these prompts have no house style for it.")
        return self.fill(f"house_{language}.md", example=_read(self._folder / f"example_{language}.txt").strip())

    def metrics(self, host: HostReport) -> dict[str, Explained]:
        """What is known of each metric on that host, by name."""
        text = self.fill("metrics.txt", cores=str(host.cores), vector_bits=str(host.vector_bits))
        rows = [line.split("|") for line in text.splitlines() if line and not line.startswith("#")]
        return {name.strip(): Explained(meaning.strip(), normal.strip()) for name, meaning, normal in rows}


@functools.cache
def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")
