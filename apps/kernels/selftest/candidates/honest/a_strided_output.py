"""An output whose rows have gaps between them."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void rows(const float* x, float* y, std::int64_t n, std::int64_t m, std::int64_t step) {
#pragma omp parallel for
  for (std::int64_t r = 0; r < n; ++r)
    for (std::int64_t i = 0; i < m; ++i) y[r * step + i] = x[r * m + i] / (1.0f + std::exp(-x[r * m + i]));
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
        y = torch.empty_strided(x.shape, (x.shape[1] + 16, 1))
        LIB.rows(P(x), P(y), N(x.shape[0]), N(x.shape[1]), N(y.stride(0)))
        return y
