"""A problem that nobody waits for is looked at when nothing else is to do, and next once somebody does."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.hosts.models import Device, Job, JobKind
from apps.runs import problems, starters
from apps.runs.models import Problem, SizingState
from tests.conftest import SOFTSIGN

pytestmark = pytest.mark.django_db


def _looking(problem: Problem) -> Job:
    job = problem.sizings.get().job
    assert job is not None and job.kind == JobKind.INSPECT
    return job


def test_a_problem_a_person_takes_in_is_looked_at_before_runs_go_on(device: Device) -> None:
    assert _looking(problems.add(None, SOFTSIGN)).priority > 0


def test_what_comes_with_pragma_waits_for_runs_until_somebody_opens_it(device: Device, tmp_path: Path) -> None:
    (tmp_path / "index.toml").write_text('[[problem]]\npath = "soft.py"\ntitle = "Soft"\nlevel = 1\n')
    (tmp_path / "soft.py").write_text(SOFTSIGN)
    (problem,) = starters.load(tmp_path)
    assert _looking(problem).priority < 0
    assert problems.sizing_for(problem, {}).state == SizingState.CHECKING
    assert _looking(problem).priority > 0


def test_what_no_host_was_there_for_waits_as_well(problem: Problem, device: Device) -> None:
    problem.sizings.update(state=SizingState.UNCHECKED)
    assert problems.look_at_unchecked() == 1
    assert _looking(problem).priority < 0
