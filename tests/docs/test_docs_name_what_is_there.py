"""Paths, commands, make targets and variables that the documentation names are there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from django.core.management import get_commands

from pragma_web.supervisor import environment

ROOT = Path(__file__).parents[2]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TRACKED = subprocess.run(
    ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
).stdout.split()
# What a server or a bundle hands out under that name, and what stands for any name.
NOT_HERE = {"pragma_kernel.py", "softsign_kernel.py", "apps/ROOM/api/urls.py", "PROBLEM.py", "CANDIDATE.py"}
KINDS = (".py", ".html", ".js", ".css", ".md", ".txt", ".toml", ".cpp", ".h", ".json")


def code_of(doc: Path) -> list[str]:
    """Its code: spans in backticks, fenced blocks, lines set in by four spaces."""
    text = doc.read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    rest = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [*re.findall(r"`([^`]+)`", rest), *re.findall(r"^    (.+)$", rest, re.MULTILINE), *blocks]


@pytest.mark.skipif(not TRACKED, reason="which files there are is asked of git")
@pytest.mark.parametrize("doc", DOCS, ids=lambda doc: doc.name)
def test_paths(doc: Path) -> None:
    named = {
        word.strip("().,:'").partition("::")[0]
        for code in code_of(doc)
        for word in code.split()
        if re.fullmatch(r"[\w./-]+", word.strip("().,:'").partition("::")[0])
    }
    files = {name for name in named if name.endswith(KINDS)} - NOT_HERE
    assert [name for name in sorted(files) if not any(f"/{path}".endswith(f"/{name}") for path in TRACKED)] == []


@pytest.mark.parametrize("doc", DOCS, ids=lambda doc: doc.name)
def test_commands_and_targets(doc: Path) -> None:
    code = "\n".join(code_of(doc))
    commands = set(re.findall(r"manage\.py (\w+)", code))
    assert commands <= set(get_commands())
    targets = set(re.findall(r"^(?:\$ )?make ([a-z-]+)", code, re.MULTILINE))
    assert targets <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_variables_each_process_sees_are_explained() -> None:
    told = (ROOT / "docs" / "deployment.md").read_text()
    groups = (environment.MACHINE, environment.BROKER, environment.DATABASE, environment.KEY, environment.WEB)
    groups += (environment.ADDRESS, environment.METRICS)
    ours = {name for group in groups for name in group if name.startswith(("PRAGMA_", "DATABASE", "REDIS"))}
    assert [name for name in sorted(ours) if f"`{name}" not in told] == []
