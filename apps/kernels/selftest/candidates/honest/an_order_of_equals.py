"""Sorts equal values in another order than torch."""

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
#include <cstdint>
extern "C" void run(const float* x, int64_t* y, int m, int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < m; ++i) {
    float v[1024];
    int64_t* o = y + (int64_t)i * n;
    for (int j = 0; j < n; ++j) v[j] = std::nearbyint(x[i * n + j] * 4), o[j] = j;
    std::sort(o, o + n, [&](int64_t a, int64_t b) { return v[a] < v[b] || (v[a] == v[b] && a > b); });
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
        y = torch.empty(x.shape, dtype=torch.int64)
        LIB.run(P(x), P(y), x.shape[0], x.shape[1])
        return y
