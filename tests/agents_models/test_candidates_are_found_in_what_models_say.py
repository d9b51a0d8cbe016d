"""Fences, prose, several blocks, parts of files, diffs: what can be used is used, what can't says what to do."""

from __future__ import annotations

import pytest

from apps.agents.writers.reading import candidate_in, summary_of
from apps.agents.writers.unusable import Unusable

KERNEL = """extern "C" void twice(const float* x, float* y, long n) {
  for (long i = 0; i < n; ++i) y[i] = 2 * x[i];
}"""
GOOD = f'''import ctypes

import torch
from torch import nn

SOURCE = r"""
{KERNEL}
"""
FLAGS = ["-O3"]


def load(source, flags):
    return ctypes.CDLL(source + " ".join(flags))


LIB = load(SOURCE, FLAGS)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x):
        y = torch.empty_like(x)
        LIB.twice(x.data_ptr(), y.data_ptr(), x.numel())
        return y
'''
SHOUT = GOOD.replace("2 * x[i]", "3 * x[i]")
FORWARD = "    def forward(self, x):\n        return LIB.twice(x)\n"
FLAGS_DIFF = (
    '--- a/kernel.py\n+++ b/kernel.py\n@@ -9,3 +9,3 @@\n """\n-FLAGS = ["-O3"]\n+FLAGS = ["-O3", "-fopenmp"]\n \n'
)


@pytest.mark.parametrize(
    "answer",
    [
        f"```python\n{GOOD}```",
        f"Plan: double it.\n\nHere it is:\n\n```python\n{GOOD}```\n\nThat is all. Good luck!",
        f"```\n{GOOD}```",
        f"~~~py\n{GOOD}~~~",
        f"````python\n{GOOD}````",
        GOOD,
        f"Sure! Here is the code:\n{GOOD}\nThis doubles every element.",
        f"<think>```python\nclass ModelNew: wrong\n```</think>\n```python\n{GOOD}```",
        f"```python\nimport torch\nprint('a test')\n```\nand the file:\n```python\n{GOOD}```",
        f"```python\n{SHOUT}```\nNo, that is wrong. Rather:\n```python\n{GOOD}```",
        f"```python\n{GOOD}```\nTo try it:\n```python\nmodel = ModelNew()\n```",
        f"```python\n{GOOD}",
        "```python\n" + GOOD.replace("\n\nclass", "\n```\nand the module:\n```python\n\nclass") + "```",
    ],
)
def test_a_whole_file_is_found_in_any_wrapping(answer: str) -> None:
    assert candidate_in(answer).split() == GOOD.split()


def test_a_kernel_beside_the_python_that_uses_it_is_put_in() -> None:
    python = GOOD.replace(f'SOURCE = r"""\n{KERNEL}\n"""\n', "")
    source = candidate_in(f"The kernel:\n```cpp\n{KERNEL}\n```\nThe module:\n```python\n{python}```")
    assert f'SOURCE = r"""\n{KERNEL}\n"""' in source


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ('```python\nFLAGS = ["-O3", "-fopenmp"]\n```', GOOD.replace('["-O3"]', '["-O3", "-fopenmp"]')),
        (f"```cpp\n{KERNEL.replace('2 *', '3 *')}\n```", SHOUT),
        (
            f"```python\nclass ModelNew(nn.Module):\n    # ... __init__ unchanged\n{FORWARD}```",
            GOOD[: GOOD.index("    def forward")] + FORWARD,
        ),
        (f"```diff\n{FLAGS_DIFF}```", GOOD.replace('["-O3"]', '["-O3", "-fopenmp"]')),
        (f"```\n{FLAGS_DIFF}```", GOOD.replace('["-O3"]', '["-O3", "-fopenmp"]')),
        (FLAGS_DIFF.replace("-9,3 +9,3", "-90,3 +90,4"), GOOD.replace('["-O3"]', '["-O3", "-fopenmp"]')),
        ('```diff\n-FLAGS = ["-O3"]\n+FLAGS = ["-O2"]\n```', GOOD.replace("-O3", "-O2")),
        (
            "```diff\n@@\n   for (long i = 0; i < n; ++i) y[i] = 2 * x[i];\n+  // done\n }\n```",
            GOOD.replace("2 * x[i];\n", "2 * x[i];\n  // done\n"),
        ),
    ],
)
def test_a_part_takes_the_place_of_the_same_part_of_the_base(part: str, expected: str) -> None:
    assert candidate_in(part, GOOD).split() == expected.split()


@pytest.mark.parametrize(
    ("answer", "base", "reason"),
    [
        ("I can't do that.", None, "no code"),
        ("```python\nprint(1)\n```", None, "class ModelNew"),
        (f"```python\n{GOOD.replace('return y', 'return y)')}```", None, "does not parse"),
        (f"```python\n{GOOD[:-40]}", None, "ends in the middle"),
        (f"```python\n{GOOD.replace('forward', 'backward')}```", None, "no `forward`"),
        (f"```python\n{GOOD.replace('LIB = load(SOURCE, FLAGS)', '')}```", None, "`LIB`, which it defines nowhere"),
        (
            f"```python\n{GOOD.replace('  for', '  // ... rest of the kernel unchanged ...')}```",
            None,
            "leaves parts out",
        ),
        (f"```diff\n{FLAGS_DIFF}```", None, "no version yet"),
        (f"```diff\n{FLAGS_DIFF.replace('O3', 'O7')}```", GOOD, "hunk 1 of the diff fits nowhere"),
        ("```diff\n@@ -1,1 +1,1 @@\n import ctypes\n```", GOOD, "changes nothing"),
        ('```cpp\nextern "C" void thrice(float* x) {}\n```', GOOD, "lacks twice"),
        ("x" * 10, GOOD, "no code"),
    ],
)
def test_what_cannot_be_used_says_why(answer: str, base: str | None, reason: str) -> None:
    with pytest.raises(Unusable, match=reason):
        candidate_in(answer, base)


def test_ordinary_comments_are_no_omissions() -> None:
    commented = GOOD.replace("FLAGS = ", "# the same flags as before, for the existing rest\nFLAGS = ")
    assert candidate_in(f"```python\n{commented}```") == commented


def test_anything_at_all_either_gives_a_candidate_or_a_reason() -> None:
    text = f"Plan: x\n```python\n{GOOD}```\n```diff\n{FLAGS_DIFF}```"
    for start in range(0, len(text), 7):
        for piece in (text[start:], text[:start]):
            try:
                assert "class ModelNew" in candidate_in(piece, GOOD)
            except Unusable as unusable:
                assert len(str(unusable)) > 10


def test_the_plan_is_the_summary() -> None:
    assert summary_of("**Plan:** fuse `both` passes.\n```python\nx\n```") == "fuse both passes."
    assert summary_of("I fuse both passes.\n```python\nx\n```") == "I fuse both passes."
