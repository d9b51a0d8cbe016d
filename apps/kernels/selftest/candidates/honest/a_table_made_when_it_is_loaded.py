"""A static constructor makes a table of powers of two; polynomials do the rest."""

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
struct Table { double at[256]; Table() { for (int i = 0; i < 256; ++i) at[i] = std::exp2(i / 256.0); } };
static const Table table;
static inline double expd(double v) {
  double t = v * 1.4426950408889634 * 256;
  double k = std::nearbyint(t), r = (t - k) * (0.6931471805599453 / 256);
  std::int64_t n = (std::int64_t)k;
  return std::ldexp(table.at[n & 255] * (1 + r * (1 + r * (0.5 + r / 6))), (int)(n >> 8));
}
extern "C" void swish(const float* x, float* y, std::int64_t n) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] / (1.0 + expd(-(double)x[i] > 700 ? 700 : -(double)x[i]));
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
        LIB.swish(P(x), P(y), N(x.numel()))
        return y
