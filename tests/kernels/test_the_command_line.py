"""`python -m apps.kernels` as scripts use it: exit codes, JSON on standard output, logs beside it."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apps.kernels.cli import evaluating, selftesting
from apps.kernels.cli.complete import complete
from apps.kernels.cli.evaluating import evaluation_json
from apps.kernels.cli.inputs import read_settings
from apps.kernels.cli.selftesting import described
from apps.kernels.evaluation import Evaluation, EvaluationRequest, Policy, Tier, Verdict
from apps.kernels.facts import ProblemFacts
from apps.kernels.plain import from_plain
from apps.kernels.selftest.bench import Tried

ROOT = Path(__file__).parents[2]
SOFTSIGN = ROOT / "problems" / "elementwise" / "softsign.py"
CANDIDATE = '''
import ctypes, os, subprocess, tempfile
import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void softsign(const float* x, float* y, int64_t n) {
    #pragma omp parallel for simd
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1.0f + std::abs(x[i]));
}
"""
DIRECTORY = tempfile.mkdtemp()
with open(os.path.join(DIRECTORY, "kernel.cpp"), "w") as file:
    file.write(SOURCE)
FLAGS = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
subprocess.run([os.environ.get("CXX", "g++"), *FLAGS, "kernel.cpp", "-o", "kernel.so"], cwd=DIRECTORY, check=True)
LIB = ctypes.CDLL(os.path.join(DIRECTORY, "kernel.so"))
LIB.softsign.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        LIB.softsign(x.data_ptr(), y.data_ptr(), x.numel())
        return y
'''
DESIGNED = {  # what scripts read, by path
    "schema", "verdict", "policy", "tier", "rejections", "library_calls", "setup.seconds", "setup.bytes", "build.seconds",
    "build.log", "correctness.trials", "correctness.passed", "correctness.max_error", "correctness.tolerance", "robustness",
    "timing.reference.median_ms", "timing.reference.ci95_ms", "timing.compiled_reference.median_ms",
    "timing.candidate.median_ms", "timing.speedup.median", "timing.speedup.ci95", "timing.speedup.decision_interval",
    "timing.speedup.level", "timing.speedup.margin", "timing.speedup.aa", "timing.outcome", "profile.tier",
    "profile.metrics", "profile.roofline", "profile.bottleneck", "isolation", "environment", "seconds",
}  # fmt: skip


def run(*arguments: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "apps.kernels", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, input=stdin, capture_output=True, text=True, timeout=120, check=False)


def at(data: Any, path: str) -> Any:
    for key in path.split("."):
        data = data[key]
    return data


def test_inspect_prints_facts_that_read_back() -> None:
    done = run("inspect", SOFTSIGN, "--json", "--set", "batch_size=2", "--set", "features=2**4")
    assert done.returncode == 0
    facts = from_plain(ProblemFacts, json.loads(done.stdout))
    assert facts.inputs[0].shape == (2, 16)
    assert facts.graph is not None
    assert "inspect: graph" in done.stderr


def test_inspect_for_people_names_what_there_is() -> None:
    done = run("inspect", "-", stdin=SOFTSIGN.read_text())
    assert done.returncode == 0
    assert "batch_size=64  features=65536" in done.stdout
    assert "aten.div.Tensor(x, add)" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["inspect", "nowhere.py"], "Can't read nowhere.py: No such file"),
        (["inspect", str(SOFTSIGN), "--set", "width=3"], "no constant width"),
        (["inspect", str(SOFTSIGN), "--set", "batch_size"], "NAME=VALUE"),
        (["inspect", str(SOFTSIGN), "--set", "batch_size=many"], "takes a whole number"),
        (["evaluate", "nowhere.py", "nowhere.py"], "Can't read nowhere.py"),
        (["evaluate", str(SOFTSIGN), str(SOFTSIGN)], "no class ModelNew"),
        (["evaluate", str(SOFTSIGN), "-", "--language", "rust"], "invalid choice: 'rust'"),
        (["evaluate", str(SOFTSIGN), "-", "--language", "cuda"], "cuda can't be judged yet"),
        (["evaluate", str(SOFTSIGN), "-", "--set", "nothing=1"], "no constant nothing"),
        (["selftest", "nothing/of_this"], "no candidate is called nothing/of_this; there are the kinds stale,"),
        ([], "COMMAND"),
        (["paint"], "invalid choice"),
    ],
)
def test_bad_usage_and_input_leave_with_2(arguments: list[str], says: str) -> None:
    done = run(*arguments, stdin=CANDIDATE)
    assert done.returncode == 2
    assert says in done.stderr + done.stdout
    assert "Traceback" not in done.stderr


def test_a_syntax_error_leaves_with_2_and_shows_the_caret(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("class Model(:\n    pass\n")
    done = run("evaluate", broken, "-", stdin=CANDIDATE)
    assert done.returncode == 2
    assert "Syntax error in line 1" in done.stderr and "^" in done.stderr


def test_an_error_is_one_json_object_too_with_every_key() -> None:
    done = run("evaluate", SOFTSIGN, "nowhere.py", "--json")
    assert done.returncode == 2
    said = json.loads(done.stdout)
    assert said["verdict"] is None and "nowhere.py" in said["error"]
    for path in DESIGNED:
        at(said, path)


def test_every_key_is_there_at_every_depth() -> None:
    said = evaluation_json(Evaluation(Verdict.REJECTED, Policy.KERNEL, Tier.QUICK))
    for path in DESIGNED:
        at(said, path)
    assert said["verdict"] == "rejected" and said["error"] is None
    assert said["timing"]["speedup"] == dict.fromkeys(("median", "ci95", "decision_interval", "level", "margin", "aa"))
    assert said["rejections"] == said["profile"]["metrics"] == []
    assert said["schema"] == complete(None, Evaluation)["schema"] == 1


def test_settings_are_read_as_python_s_literals() -> None:
    given = ["a=4096", "b=1e-5", "c=True", "d=text", "e=2**10", "f= -3", "g=a=b", "h='x'"]
    values = read_settings(given)
    assert values == {"a": 4096, "b": 1e-5, "c": True, "d": "text", "e": 1024, "f": -3, "g": "a=b", "h": "x"}


@pytest.mark.judge
@pytest.mark.parametrize(
    ("tier", "profile", "measures"), [("full", False, True), ("quick", True, True), ("quick", False, False)]
)
def test_what_memory_reaches_is_measured_wherever_the_floor_decides(
    tier: str, profile: bool, measures: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(evaluating, "Zygote", nullcontext)
    monkeypatch.setattr(evaluating, "host_report", lambda *, quick, observe: asked.append(not quick))
    monkeypatch.setattr(evaluating, "evaluate", lambda *words, **options: None)
    evaluating._judged(EvaluationRequest("", "", tier=Tier(tier), profile=profile))
    assert asked == [measures]


def test_evaluate_gives_a_verdict_and_its_exit_code(tmp_path: Path) -> None:
    right, wrong, cheat = tmp_path / "right.py", tmp_path / "wrong.py", tmp_path / "cheat.py"
    right.write_text(CANDIDATE)
    wrong.write_text(CANDIDATE.replace("1.0f + std::abs", "1.1f + std::abs"))
    cheat.write_text(CANDIDATE.replace("return y", "return x / (1 + torch.abs(x))"))
    small = ["--tier", "quick", "--no-profile", "--json", "--set", "features=512"]

    done = run("evaluate", SOFTSIGN, right, *small)
    said = json.loads(done.stdout)
    assert (done.returncode, said["verdict"]) == (0, "correct"), done.stderr
    assert said["timing"]["speedup"]["median"] > 0 and said["timing"]["outcome"] is None
    assert "build:" in done.stderr

    done = run("evaluate", SOFTSIGN, wrong, *small)
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (1, "incorrect")

    done = run("evaluate", SOFTSIGN, cheat, *small)
    said = json.loads(done.stdout)
    assert (done.returncode, said["verdict"]) == (1, "rejected")
    assert said["rejections"][0]["where"].startswith("line ")


def test_a_self_test_of_nothing_is_one_json_object_with_every_key() -> None:
    done = run("selftest", "nowhere", "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 2 and "nowhere" in said["error"]
    assert said["candidates"] == [] and said["as_expected"] is False
    assert said["host"] == {"torch": None, "isolation": None, "level": None}


@pytest.mark.judge
def test_a_self_test_says_what_was_expected_found_and_why() -> None:
    done = run("selftest", "stale/zeros", "wrong/nothing", "patched/the_clock", "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 0 and said["as_expected"] is True and said["tried"] == 3, done.stderr
    zeros, clock, nothing = said["candidates"]
    assert (zeros["kind"], zeros["candidate"], zeros["found"]) == ("stale", "zeros", "incorrect")
    assert "elements are off" in zeros["reason"] and "its outputs are None" in nothing["reason"]
    assert clock["rules"] == ["patches"] and clock["found"] == "rejected"
    assert "3/3 " in done.stderr


def test_a_self_test_s_table_names_what_is_not_as_expected() -> None:
    good = Tried(
        "stale", "zeros", "swish", "kernel", ("incorrect",), "incorrect", "524288 elements are off", (), True, "", 0.5
    )
    bad = replace(
        good, candidate="ones", found="correct", reason="", as_expected=False, why="the verdict should be incorrect"
    )
    text = described([good, bad], 3.0)
    assert "Not as expected\n  stale/ones  the verdict should be incorrect" in text
    assert text.endswith("2 candidates tried in 3 s: 2 dishonest or wrong, 0 honest; 1 not as expected.")


def test_a_self_test_says_at_once_why_something_is_not_as_expected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = Tried(
        "stale", "ones", "swish", "kernel", ("incorrect",), None, "no\nmemory", (), False, "the judge failed", 0.5
    )

    def one_after_the_other(_chosen: object, watch: Callable[[int, Tried], None], _waiting: object) -> object:
        watch(1, bad)
        return [bad], {}

    monkeypatch.setattr(selftesting, "try_all", one_after_the_other)
    assert selftesting.run(Namespace(only=["stale/zeros"], json=True)) == 1
    assert "1/1 stale/ones: not judged, the judge failed: no memory\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "lacks"),
    [
        (("-m", "apps.kernels", "inspect", "problems/elementwise/softsign.py"), "torch"),
        (("manage.py", "optimize", "problems/elementwise/softsign.py"), "django"),
    ],
)
def test_a_python_without_the_packages_names_the_one_that_has_them(words: tuple[str, ...], lacks: str) -> None:
    """`-S` is a Python that finds no installed package."""
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-S", *words], cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert f"has no {lacks}" in done.stderr and ".venv/bin/python" in done.stderr
    assert "Traceback" not in done.stderr
