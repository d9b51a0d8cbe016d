"""The command that Launch offers is one that `manage.py optimize` takes, and it asks for the same run."""

from __future__ import annotations

import shlex
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.agents.words import Seed
from apps.runs.launch import LaunchOrder
from apps.runs.management.commands.optimize import Command, _overrides
from apps.runs.models import Problem, Run
from apps.runs.presentation.launch_page import command, file_of
from tests.pages import scenes
from tests.runs.test_what_a_run_starts_from import CANDIDATE

WHOLE = LaunchOrder(
    Problem(slug="soft-sign", source="x"),
    device="",
    overrides={"BATCH": 32, "SCALE": 0.5, "KIND": "a b; rm"},
    policy="kernel",
    coder="some model",
    iterations=3,
    candidates=2,
    profile=False,
    goal=2.5,
    seconds=450.0,
    money_usd=Decimal("1.50"),
    tokens=90_000,
    temperatures=(0.2, 0.9),
)


def options_of(line: str, problem: Problem) -> dict[str, Any]:
    """The command line as the command reads it."""
    words = shlex.split(line)
    assert words[:4] == ["python", "manage.py", "optimize", f"{problem.slug}.py"]
    return vars(Command().create_parser("manage.py", "optimize").parse_args(words[3:]))


def asked_for(line: str, problem: Problem) -> LaunchOrder:
    """What the command line would launch."""
    options = options_of(line, problem)
    return Command()._order(problem, _overrides(options["overrides"]), options)


@pytest.mark.parametrize("order", [WHOLE, LaunchOrder(WHOLE.problem, device="")])
def test_it_asks_for_the_same_run(order: LaunchOrder) -> None:
    for best in (False, True):
        line = command(order.problem, order, builtin_best=best)
        assert asked_for(line, order.problem) == order
        assert options_of(line, order.problem)["builtin_best"] is best


def test_twins_are_two_commands() -> None:
    lines = command(WHOLE.problem, replace(WHOLE, twins=True), builtin_best=True).splitlines()
    assert [asked_for(line, WHOLE.problem).profile for line in lines] == [True, False]
    assert all(options_of(line, WHOLE.problem)["builtin_best"] for line in lines)


def test_what_it_starts_from_goes_along_as_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(CANDIDATE)
    line = command(WHOLE.problem, WHOLE, ["mine.py"])
    assert asked_for(line, WHOLE.problem).seeds == (Seed(CANDIDATE, "a person"),)


def test_the_page_names_the_files_that_it_needs(db: None) -> None:
    world: dict[str, Any] = scenes.world()
    client = Client()
    client.force_login(world["person"])
    version = world["done"].versions.get(number=4)
    page = client.get(f"/launch/?from={world['done'].pk}&seed={world['done'].pk}.4").content.decode()
    assert f"--seed {file_of(version)}" in page
    assert f'href="/runs/{world["done"].pk}/v4.py" download' in page
    assert "--builtin-best" not in page
    page = client.get(f"/launch/?from={world['done'].pk}&builtin_best=on").content.decode()
    assert "--builtin-best" in page


def test_what_another_run_started_from_goes_along_as_the_versions_it_became(db: None) -> None:
    world: dict[str, Any] = scenes.world()
    client = Client()
    client.force_login(world["person"])
    run, first = world["done"], world["done"].versions.get(number=1)
    Run.objects.filter(pk=run.pk).update(seeds=[{"source": first.source, "author": "a person", "plan": None}])
    unjudged = client.get(f"/launch/?copy={run.pk}").content.decode()
    assert "--seed" not in unjudged and "has not judged all it starts from" in unjudged
    run.versions.filter(pk=first.pk).update(iteration=0)
    page = client.get(f"/launch/?copy={run.pk}").content.decode()
    assert f"--seed {file_of(first)}" in page and "has not judged all" not in page
    assert f'href="/runs/{run.pk}/v1.py" download' in page
