"""`manage.py optimize` as the terminal runs it, on a machine whose judge is scripted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.runs import inprocess
from apps.runs.management.commands import optimize
from tests.conftest import host_report, problem_facts


def judge_with(monkeypatch: pytest.MonkeyPatch, device: Callable[[], Any]) -> None:
    """This machine with another judge; everything else is as it is."""
    monkeypatch.setattr(inprocess, "LocalEvaluator", lambda assignment, zygote, interrupt: device())
    monkeypatch.setattr(optimize, "host_report", lambda observe: host_report())
    monkeypatch.setattr(optimize, "inspect", lambda *args, **options: problem_facts())
    monkeypatch.setattr(optimize, "Zygote", lambda: nullcontext())
    monkeypatch.setattr(optimize, "_log_to_file", lambda: None)


def run_command(*words: str) -> tuple[int, str, str]:
    """Exit status, output and errors of `optimize` with these words."""
    out, err = StringIO(), StringIO()
    with pytest.raises((SystemExit, CommandError)) as ended:
        call_command("optimize", *words, stdout=out, stderr=err)
    if isinstance(ended.value, CommandError):
        return ended.value.returncode, out.getvalue(), str(ended.value)
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()
