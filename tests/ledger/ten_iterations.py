"""Three problems and what a model says to each in ten iterations: good kernels, broken ones, cheats, and chatter.

Every candidate is real, so that the judge can try it, and names its verdict in a comment, for a device that reads no more
than that. A version is made faster by going over its data fewer times, so the order of speeds is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.agents_models.server import Reply, Request
from tests.agents_models.world import counsel, diagnosis, is_conductor, is_verifier

_PROBLEM = '''"""{title}, at a size that is judged quickly."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return {torch}


def get_inputs():
    return [torch.randn(64, 4096)]


def get_init_inputs():
    return []
'''

_CANDIDATE = '''# judged: {judged}
import ctypes
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstdlib>

extern "C" void kernel(const float* __restrict x, float* __restrict y, int64_t rows, int64_t columns) {{
  for (int pass = 0; pass < {passes}; ++pass) {{
    asm volatile("" ::: "memory");
    for (int64_t row = 0; row < rows; ++row) {{
      {body}
    }}
  }}
}}
"""


def load(source):
    directory = tempfile.mkdtemp()
    text, library = os.path.join(directory, "kernel.cpp"), os.path.join(directory, "kernel.so")
    with open(text, "w") as file:
        file.write(source)
    flags = ["-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC"]
    command = ["g++", "-std=c++17", *flags, text, "-o", library]
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode:
        raise RuntimeError(built.stderr)
    return ctypes.CDLL(library)


LIB = load(SOURCE)


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty({shape})
        LIB.kernel(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_int64(x.shape[0]),
                   ctypes.c_int64(x.shape[1]))
        return y
'''

_CHEAT = """# judged: rejected
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return {torch}  # {excuse}
"""

_EACH = "for (int64_t i = row * columns; i < (row + 1) * columns; ++i) y[i] = {element};"


@dataclass(frozen=True)
class Task:
    """A problem, and its kernels: right, and wrong in its formula."""

    title: str
    torch: str
    right: str
    wrong: str
    shape: str = "x.shape"

    @property
    def source(self) -> str:
        """The problem's text."""
        return _PROBLEM.format(title=self.title, torch=self.torch)

    def kernel(self, judged: str, passes: int = 1, body: str = "") -> str:
        """A candidate that goes over its data so many times."""
        return _CANDIDATE.format(judged=judged, passes=passes, body=body or self.right, shape=self.shape)

    def cheat(self, excuse: str) -> str:
        """A candidate that has PyTorch do the work."""
        return _CHEAT.format(torch=self.torch, excuse=excuse)


TASKS = (
    Task(
        "Soft-sign of rows",
        "x / (1 + x.abs())",
        _EACH.format(element="x[i] / (1.0f + std::fabs(x[i]))"),
        _EACH.format(element="x[i] / (2.0f + std::fabs(x[i]))"),
    ),
    Task(
        "Squared ReLU of rows",
        "torch.relu(x) * torch.relu(x)",
        _EACH.format(element="x[i] < 0.0f ? 0.0f : x[i] * x[i]"),
        _EACH.format(element="x[i] * x[i]"),
    ),
    Task(
        "Mean square of rows",
        "(x * x).mean(dim=1)",
        "double sum = 0; for (int64_t i = 0; i < columns; ++i) sum += (double)x[row * columns + i] * x[row * columns + i]; "
        "y[row] = (float)(sum / columns);",
        "double sum = 0; for (int64_t i = 0; i < columns; ++i) sum += (double)x[row * columns + i] * x[row * columns + i]; "
        "y[row] = (float)sum;",
        "x.shape[:1]",
    ),
)

CHATTER = Reply("I would be glad to help with your kernel! Shall I begin with the loops, or with the memory?")
REFUSAL = Reply("", "Is this allowed? ", finish="content_filter")


def said(source: str, plan: str = "go over the rows") -> Reply:
    """A model's answer with that candidate in it."""
    return Reply(f"Plan: {plan}.\n\n```python\n{source}```\n", "Let me think about rows and caches.", piece=400)


def script(task: Task) -> list[Reply]:
    """What the Coder is answered, call by call."""
    first = said(task.kernel("correct 1.1", 32))
    half = said(task.kernel("correct 2.9", 1))
    return [
        first,  # 1
        said(task.kernel("build_failed", 1, "undeclared += row;")),  # 2, repaired
        said(task.kernel("correct 1.3", 16)),
        said(task.cheat("the library knows best")),  # 3, and its repairs cheat too
        said(task.cheat("still the library")),
        said(task.cheat("nothing but the library")),
        CHATTER,  # 4, sent back and no better
        CHATTER,
        said(task.kernel("incorrect", 1, task.wrong)),  # 5, repaired
        said(task.kernel("correct 1.6", 8)),
        first,  # 6, the first version word for word, twice
        first,
        said(task.kernel("crashed", 1, "std::abort();")),  # 7, repaired
        said(task.kernel("correct 2.0", 4)),
        said(task.kernel("correct 2.4", 2)),  # 8
        REFUSAL,  # 9
        Reply(half.text[: len(half.text) // 2], finish="length", piece=400),  # 10, cut short and sent back
        half,
    ]


# Version by version: iteration, repair and verdict.
VERSIONS = [
    (1, 0, "correct"), (2, 0, "build_failed"), (2, 1, "correct"), (3, 0, "rejected"), (3, 1, "rejected"),
    (3, 2, "rejected"), (5, 0, "incorrect"), (5, 1, "correct"), (7, 0, "crashed"), (7, 1, "correct"), (8, 0, "correct"),
    (10, 0, "correct"),
]  # fmt: skip
BEST = 12
# What came to no version, by iteration, and a part of the reason that is shown.
DROPPED = {4: "it holds no code", 6: "it is v1 again, word for word", 9: "refuses to answer this"}
# What is shown of versions that failed, by number.
FAILED = {2: "build failed", 4: "rejected", 5: "rejected", 6: "rejected", 7: "incorrect", 9: "crashed"}


@dataclass
class Model:
    """Answers each task's questions by its own script, whatever order the runs come in."""

    asked: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._scripts: dict[str, Iterator[Reply]] = {task.title: iter(script(task)) for task in TASKS}

    def __call__(self, request: Request) -> Reply:
        task = next(task for task in TASKS if task.title in str(request.body["messages"]))
        if is_conductor(request):
            return counsel("time_over_reference", 0.0)
        if is_verifier(request):
            return diagnosis()
        self.asked[task.title] = self.asked.get(task.title, 0) + 1
        return next(self._scripts[task.title])
