"""The house style of a candidate, as a template: C source, and the body of ModelNew."""

from __future__ import annotations

import textwrap

TEMPLATE = '''
import ctypes, hashlib, os, subprocess, tempfile, threading, time
import torch
from torch import nn
SOURCE = r"""
#include <cstdint>
#include <cmath>
#include <cstring>
#include <algorithm>
#include <thread>
#include <vector>
using std::int64_t;
{c}
"""
def load(source, flags=("-O3", "-march=native", "-fopenmp")):
    directory = os.path.join(tempfile.gettempdir(), hashlib.sha256(source.encode()).hexdigest()[:16])
    os.makedirs(directory, exist_ok=True)
    so = os.path.join(directory, "kernel.so")
    if not os.path.exists(so):
        text = os.path.join(directory, "kernel.cpp")
        open(text, "w").write(source)
        command = [os.environ.get("CXX", "g++"), "-std=c++17", "-shared", "-fPIC", *flags, text, "-o", so]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
    return ctypes.CDLL(so)
LIB = load(SOURCE)
def P(tensor): return ctypes.c_void_p(tensor.data_ptr())
def N(value): return ctypes.c_int64(value)
{rest}
'''

SWISH_C = """
extern "C" void swish(const float* __restrict x, float* __restrict y, int64_t n) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i]));
}
"""


def candidate(
    c: str, forward: str, *, init: str = "pass", arguments: str = "x", more: str = "", methods: str = ""
) -> str:
    """A whole candidate from its C source and the body of forward."""
    model = (
        f"{textwrap.dedent(more)}\n"
        "class ModelNew(nn.Module):\n"
        "    def __init__(self, *init):\n"
        "        super().__init__()\n"
        f"{textwrap.indent(textwrap.dedent(init), ' ' * 8)}\n"
        f"{textwrap.indent(textwrap.dedent(methods), ' ' * 4)}\n"
        f"    def forward(self, {arguments}):\n"
        f"{textwrap.indent(textwrap.dedent(forward), ' ' * 8)}\n"
    )
    return TEMPLATE.replace("{c}", c).replace("{rest}", model)


def swish(forward: str, **more: str) -> str:
    """A candidate that has the honest swish kernel at hand."""
    return candidate(SWISH_C + more.pop("c", ""), forward, **more)


HONEST_SWISH = "y = torch.empty_like(x)\nLIB.swish(P(x), P(y), N(x.numel()))\nreturn y\n"
