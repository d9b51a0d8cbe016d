"""manage.py optimize, load_problems, first_run and suite: what they print, write and answer."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from apps.agents.coders import Pair
from apps.hosts.models import Device, Host
from apps.people.models import Person
from apps.runs import tasks
from apps.runs.management.commands import first_run, optimize
from apps.runs.models import Origin, Problem, Run, RunState, Sizing, Version
from tests.agents.doubles import ScriptedCoder, ScriptedConductor, ScriptedDevice, World
from tests.conftest import SOFTSIGN, problem_facts
from tests.runs.optimizing import judge_with, run_command

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def problem_file(tmp_path: Path) -> Path:
    path = tmp_path / "soft_sign.py"
    path.write_text(SOFTSIGN)
    return path


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> World:
    """This machine with a scripted coder and judge; everything else is as it is."""
    world = World({(1, 0): "correct 1.5", (2, 0): "incorrect", (3, 0): "correct 2.5"}, repairs={})
    world.repairs = {(2, 0, 1): "correct 1.8"}
    monkeypatch.setattr(tasks, "coder_named", lambda name: Pair(ScriptedCoder(world), ScriptedConductor(world)))
    judge_with(monkeypatch, lambda: ScriptedDevice(world))
    return world


def test_a_faster_kernel_is_found_shown_and_written(machine: World, problem_file: Path, tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    code, out, err = run_command(str(problem_file), "--iterations", "3", "--out", str(kernel))
    assert code == 0
    assert "v4*" in out and "2.50×" in out and "v2 " in out
    assert "best so far" in err
    assert kernel.read_text() == "correct 2.5"
    run = Run.objects.get()
    assert (run.state, run.owner, run.problem.title) == (RunState.FINISHED, None, "Soft sign")
    assert Version.objects.filter(run=run).count() == 4


def test_json_is_one_object_with_everything_in_it(machine: World, problem_file: Path) -> None:
    code, out, err = run_command(str(problem_file), "--iterations", "1", "--no-profile", "--json", "--set", "BATCH=32")
    assert code == 0
    found = json.loads(out)
    assert (found["result"], found["outcome"], found["profile"], found["overrides"]) == (
        1,
        "faster",
        False,
        {"BATCH": 32},
    )
    assert found["speedup"]["median"] == pytest.approx(1.5)
    assert found["source"] == found["versions"][0]["source"] == "correct 1.5"
    assert found["spend"]["cost_usd"] == pytest.approx(0.25)
    assert "v1 correct" in err


def test_no_faster_kernel_is_told_by_the_exit_code(machine: World, problem_file: Path) -> None:
    machine.full = {"correct 1.5": "correct 1.001"}
    code, out, _ = run_command(str(problem_file), "--iterations", "1")
    assert code == 1
    assert "no faster than the reference beyond noise" in out


def test_it_starts_from_the_built_in_coders_best(machine: World, problem_file: Path) -> None:
    assert run_command(str(problem_file), "--iterations", "3")[0] == 0
    Version.objects.update(author="builtin")
    assert run_command(str(problem_file), "--iterations", "1", "--builtin-best")[0] == 0
    assert [(seed["author"], seed["source"]) for seed in Run.objects.latest("id").seeds] == [("builtin", "correct 2.5")]


def test_a_kernel_that_the_built_in_coder_can_not_write_is_refused_with_2(machine: World, problem_file: Path) -> None:
    code, _, complaint = run_command(str(problem_file), "--builtin-best")
    assert code == 2 and "The built-in coder can't write this kernel" in complaint
    assert not Run.objects.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--language", "fortran"], "It knows cpp"),
        (["--language", "cuda"], "can't judge cuda"),
        (["--coder", "gpt-7"], "use 'builtin'"),
        (["--policy", "none"], "Choose one of"),
        (["--iterations", "0"], "between 1 and"),
        (["--set", "ROWS=1"], "There is no constant ROWS"),
        (["--set", "BATCH"], "NAME=VALUE"),
        (["--out", "/nowhere/at/all/kernel.py"], "there is no directory /nowhere/at/all"),
        (["--out", "/"], "is a directory"),
        (["--set", "BATCH=many"], "whole number"),
    ],
)
def test_bad_usage_is_refused_with_2_and_leaves_nothing(
    machine: World, problem_file: Path, words: list[str], says: str
) -> None:
    code, out, complaint = run_command(str(problem_file), *words)
    assert (code, out) == (2, "")
    assert says in complaint
    assert not Run.objects.exists()


def test_what_is_no_problem_is_refused_with_2(machine: World, tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    code, _, complaint = run_command(str(other))
    assert code == 2 and complaint.rstrip().endswith("can't be read: No such file or directory.")
    other.write_text("def broken(:")
    code, _, complaint = run_command(str(other))
    assert code == 2 and "Syntax error in line 1" in complaint
    assert not Problem.objects.exists()


def test_a_problem_that_can_not_be_judged_here_is_refused_with_2(
    machine: World, problem_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_large = replace(problem_facts(), refusal="It needs 200 GB and this machine has 8: try BATCH=64.")
    monkeypatch.setattr(optimize, "inspect", lambda *args, **options: too_large)
    code, _, complaint = run_command(str(problem_file))
    assert code == 2 and "try BATCH=64" in complaint
    assert not Run.objects.exists() and not Problem.objects.exists()


def test_a_suite_is_refused_with_2() -> None:
    with pytest.raises(CommandError, match="not part of this version") as refused:
        call_command("suite")
    assert refused.value.returncode == 2


def test_loading_problems_twice_changes_nothing_and_a_changed_file_replaces_the_old(tmp_path: Path) -> None:
    (tmp_path / "index.toml").write_text('[[problem]]\npath = "a/soft.py"\ntitle = "Soft"\nlevel = 1\n')
    file = tmp_path / "a" / "soft.py"
    file.parent.mkdir()
    file.write_text(SOFTSIGN)
    (tmp_path / "a" / "more.py").write_text(SOFTSIGN + "\n# more\n")
    for _ in range(2):
        call_command("load_problems", str(tmp_path), stdout=StringIO())
    assert list(Problem.objects.order_by("pk").values_list("title", "category", "level", "origin")) == [
        ("Soft", "a", 1, Origin.STARTER),
        ("More", "a", None, Origin.STARTER),
    ]
    file.write_text(SOFTSIGN + "\n# changed\n")
    call_command("load_problems", str(tmp_path), stdout=StringIO())
    assert list(Problem.objects.filter(hidden=False).values_list("title", flat=True).order_by("title")) == [
        "More",
        "Soft",
    ]
    assert Problem.objects.count() == 3


def test_the_problems_that_come_with_pragma_are_problems(db: None) -> None:
    call_command("load_problems", stdout=StringIO())
    assert Problem.objects.filter(origin=Origin.STARTER, hidden=False).count() >= 12
    assert not Problem.objects.filter(title="Untitled problem").exists()


def test_the_first_run_is_launched_once_a_host_is_there(
    problem: Problem, device: Device, admin: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    Problem.objects.update(origin=Origin.STARTER)
    Host.objects.update(enabled=False)

    def host_comes(seconds: float) -> None:
        Host.objects.update(enabled=True)

    monkeypatch.setattr(first_run.time, "sleep", host_comes)
    out = StringIO()
    call_command("first_run", address="http://127.0.0.1:9/", stdout=out)
    run = Run.objects.get()
    assert out.getvalue().strip() == f"http://127.0.0.1:9/runs/{run.pk}/"
    assert run.owner == admin
    call_command("first_run", stdout=out)
    assert Run.objects.count() == 1


def test_the_first_run_says_what_it_waits_for(problem: Problem, device: Device) -> None:
    Problem.objects.update(origin=Origin.STARTER)
    Sizing.objects.update(state="refused", refusal="It raises ValueError.")
    with pytest.raises(CommandError, match="ValueError"):
        call_command("first_run", wait=0.1)
