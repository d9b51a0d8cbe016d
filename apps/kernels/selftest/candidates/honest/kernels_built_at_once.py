"""Builds its two kernels at once, in a pool that has ended before the import is done."""

import ctypes
import hashlib
import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
extern "C" void scale(const float* x, float* y, float f, std::int64_t n) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * f;
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


ROWS = r"""
#include <cmath>
extern "C" void largest(const float* x, float* z, int m, int n) {
#pragma omp parallel for
  for (int i = 0; i < m; ++i) {
    float t = 0;
    for (int j = 0; j < n; ++j) t = std::fabs(x[i * n + j]) > t ? std::fabs(x[i * n + j]) : t;
    z[i] = t;
  }
}
"""
with ThreadPoolExecutor(2) as pool:
    SCALE, LARGEST = pool.map(load, [SOURCE, ROWS])


def P(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def N(value):
    return ctypes.c_int64(value)


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x, scale, flip):
        y, z = torch.empty_like(x), torch.empty(x.shape[0])
        SCALE.scale(P(x), P(y), ctypes.c_float(-scale if flip else scale), N(x.numel()))
        LARGEST.largest(P(x), P(z), x.shape[0], x.shape[1])
        return y, z
