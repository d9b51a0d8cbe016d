"""What a level of isolation promises, what a host requires, and who may go below it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from apps.kernels.cli import hosting
from apps.kernels.evaluation import EvaluationRequest
from apps.kernels.host import report
from apps.kernels.inspect import inspect
from apps.kernels.jail import IsolationTooWeak, Zygote, isolation, isolation_level, refusal, required_level
from apps.kernels.judge import HostCannotJudge, evaluate
from apps.kernels.machine import IsolationLevel
from tests.conftest import host_report

ROOT = Path(__file__).parents[2]
SOFTSIGN = (ROOT / "problems" / "elementwise" / "softsign.py").read_text()


def test_a_level_promises_what_the_weaker_ones_do() -> None:
    full, partial, weak = IsolationLevel
    assert full.at_least(partial) and partial.at_least(partial) and not weak.at_least(partial)
    assert len({level.guarantee for level in IsolationLevel}) == 3


def test_without_namespaces_it_is_partial_and_says_what_is_missing_and_why() -> None:
    rows = {row.name: row for row in isolation("light")}
    assert not rows["namespaces"].enforced and rows["seccomp"].enforced
    assert isolation_level("light") in (IsolationLevel.PARTIAL, IsolationLevel.WEAK)
    assert all(row.detail for row in rows.values() if row.enforced)


def test_what_is_required_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    assert required_level() is IsolationLevel.PARTIAL
    monkeypatch.setenv("PRAGMA_ISOLATION", "full")
    why = refusal("light", allowed=False)
    assert why is not None and "full is required" in why and "--allow-weak-isolation" in why and "namespaces" in why
    assert refusal("light", allowed=True) is None
    monkeypatch.setenv("PRAGMA_ISOLATION", "weak")
    assert refusal("light", allowed=False) is None


def test_a_setting_that_says_nothing_refuses_even_with_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRAGMA_ISOLATION", "some")
    why = refusal("root", allowed=True)
    assert why is not None and "'some'" in why and "full, partial, weak" in why
    environment: dict[str, object] = {}
    assert report._required(environment) is IsolationLevel.FULL and "some" in str(environment["isolation_setting"])


def test_below_it_neither_a_candidate_nor_a_problem_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRAGMA_ISOLATION", "full")
    with Zygote("light", bare=True) as zygote:
        request = EvaluationRequest(SOFTSIGN, SOFTSIGN.replace("Model(", "ModelNew("), profile=False)
        monkeypatch.setattr("apps.kernels.judge.ruling.static_rules", lambda request: ())
        with pytest.raises(HostCannotJudge, match="full is required"):
            evaluate(request, zygote=zygote)
        with pytest.raises(IsolationTooWeak, match="full is required"):
            inspect(SOFTSIGN, zygote=zygote)


def test_the_command_line_leaves_with_3_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(SOFTSIGN)
    code = (
        "import importlib, sys; from apps.kernels.jail import Zygote\n"
        "importlib.import_module('apps.kernels.jail.isolation').best_mode.__wrapped__\n"
        "from apps.kernels.jail import zygote as z; z.best_mode = lambda: 'light'\n"
        "from apps.kernels.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "inspect", str(tmp_path / "problem.py")]
    environment = {"PYTHONPATH": str(ROOT), "PRAGMA_ISOLATION": "full", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "full is required" in done.stderr and "PRAGMA_ISOLATION=partial" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_report_says_what_its_level_promises_and_what_is_required() -> None:
    short = replace(host_report(), isolation_level="partial", isolation_required="full")
    assert not short.isolates_enough and replace(short, isolation_required="partial").isolates_enough
    text = hosting.described(short)
    assert IsolationLevel.PARTIAL.guarantee in text and "full is required here" in text
    assert not replace(short, isolation_level="unheard of").isolates_enough
    assert json.loads(json.dumps(short.isolation_guarantee)) == IsolationLevel.PARTIAL.guarantee
