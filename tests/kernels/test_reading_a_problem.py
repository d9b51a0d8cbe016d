"""A problem is read by its text alone, and what is wrong with it is said so that one can mend it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from apps.kernels.problem import BadProblem, Value, read_problem

PROBLEMS = Path(__file__).parents[2] / "problems"
SOURCE = '''"""Scales, in a chain.

Second paragraph."""
import torch
from torch import nn

batch, features = 16, 1024 * 4
scale: float = 0.5
NAME = "é"; wide = 2**20  # two on a line, after a character of two bytes
USE_BIAS = True
twice = features * 2


class Model(nn.Module):
    def forward(self, x):
        features = 3
        return x * scale


def get_inputs():
    return [torch.randn(batch, features)]


def get_init_inputs():
    return []
'''


def changed(old: str, new: str) -> str:
    assert old in SOURCE
    return SOURCE.replace(old, new)


def test_constants_are_found_with_value_and_line() -> None:
    constants = {c.name: (c.value, c.line) for c in read_problem(SOURCE).constants}
    assert constants == {
        "batch": (16, 7),
        "features": (4096, 7),
        "scale": (0.5, 8),
        "NAME": ("é", 9),
        "wide": (1048576, 9),
        "USE_BIAS": (True, 10),
    }


def test_the_docstring_is_kept() -> None:
    assert read_problem(SOURCE).docstring.startswith("Scales, in a chain.\n\nSecond")


def test_overriding_rewrites_the_text_and_nothing_else() -> None:
    problem = read_problem(SOURCE, {"features": 8, "wide": 4, "scale": 2, "USE_BIAS": False, "NAME": "x"})
    lines, before = problem.source.splitlines(), SOURCE.splitlines()
    assert lines[6] == "batch, features = 16, 8"
    assert lines[7] == "scale: float = 2.0"
    assert lines[8] == "NAME = 'x'; wide = 4  # two on a line, after a character of two bytes"
    assert lines[9] == "USE_BIAS = False"
    assert lines[10:] == before[10:]
    assert problem.original == SOURCE
    assert {c.name: c.value for c in problem.constants}["features"] == 8


def test_sizes_change_the_problem_s_identity() -> None:
    assert read_problem(SOURCE, {"batch": 17}).digest != read_problem(SOURCE).digest
    assert read_problem(SOURCE, {"batch": 16}).digest == read_problem(SOURCE).digest


def test_reading_runs_nothing(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    read_problem(SOURCE + f"\nopen({str(mark)!r}, 'w')\n")
    assert not mark.exists()


def test_windows_line_ends_and_a_byte_order_mark_are_read() -> None:
    problem = read_problem("\ufeff" + SOURCE.replace("\n", "\r\n"), {"batch": 2})
    assert "batch, features = 2, 1024 * 4" in problem.source


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ({"width": 3}, "no constant width to set. The problem has: batch = 16, features = 4096"),
        ({"twice": 3}, "no constant twice"),
        ({"batch": 1.5}, "batch is 16 in line 7: it takes a whole number, not 1.5"),
        ({"batch": "many"}, "not 'many'"),
        ({"batch": True}, "whole number"),
        ({"USE_BIAS": 1}, "True or False"),
        ({"NAME": 1}, "a text"),
    ],
)
def test_an_override_that_fits_nothing_is_refused(overrides: dict[str, Value], says: str) -> None:
    with pytest.raises(BadProblem, match=says):
        read_problem(SOURCE, overrides)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (changed("class Model(", "class Net("), "no class Model.*There is a class Net: rename it"),
        (changed("class Model(", "class FusedScale("), "no class Model.*There is a class FusedScale: rename it"),
        (changed("class Model(nn.Module)", "class Model"), "must derive from torch.nn.Module"),
        (changed("def forward", "def run"), "has no forward"),
        (changed("def get_inputs", "def inputs"), r"There is no get_inputs\(\)"),
        (changed("def get_init_inputs", "def init"), r"There is no get_init_inputs\(\)"),
        (changed("def get_inputs()", "def get_inputs(n)"), "without arguments"),
        (SOURCE + "\nget_inputs = 3\n", "get_inputs must be a function"),
        ("x = '" + "a" * (1 << 20) + "'", "at most 1,048,576"),
        ("x = 1\0", "null byte"),
    ],
)
def test_what_is_missing_is_named(source: str, says: str) -> None:
    with pytest.raises(BadProblem, match=says):
        read_problem(source)


def test_a_syntax_error_shows_line_and_caret() -> None:
    with pytest.raises(BadProblem) as caught:
        read_problem(changed("return x * scale", "return x * * scale"))
    assert caught.value.line == 17
    message, line, caret = str(caught.value).splitlines()
    assert message.startswith("Syntax error in line 17: ")
    assert caret.index("^") == line.index("* scale")


def test_forward_may_come_from_a_base() -> None:
    local = changed("class Model(nn.Module)", "class Base(nn.Module)") + "\nclass Model(Base):\n    pass\n"
    read_problem(local)
    read_problem(changed("class Model(nn.Module):\n    def forward", "class Model(nn.ReLU):\n    def other"))


def test_quirks_are_seen_in_the_text() -> None:
    source = changed("return x * scale", "return x.cuda() + torch.rand(3) + x.sum().item()")
    quirks = {quirk.name: quirk.detail for quirk in read_problem(source).quirks}
    assert set(quirks) == {"random", "device by name", "reads values"}
    assert all("line 17" in detail for detail in quirks.values())
    assert read_problem(SOURCE).quirks == ()


def test_the_problems_that_come_with_it_are_listed_and_read() -> None:
    index = tomllib.loads((PROBLEMS / "index.toml").read_text())["problem"]
    files = {str(path.relative_to(PROBLEMS)) for path in PROBLEMS.rglob("*.py")}
    assert {entry["path"] for entry in index} == files
    assert len(index) == 17
    for entry in index:
        assert entry["path"].startswith(entry["category"] + "/")
        problem = read_problem((PROBLEMS / entry["path"]).read_text())
        assert problem.docstring and problem.constants and not problem.quirks
