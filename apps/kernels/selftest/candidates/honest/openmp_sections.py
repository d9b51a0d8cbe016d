"""OpenMP sections, each with a sum of its own."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
static double part(const float* x, const float* y, std::int64_t a, std::int64_t b) {
  double s = 0;
#pragma omp simd reduction(+ : s)
  for (std::int64_t i = a; i < b; ++i) s += double(x[i] - y[i]) * (x[i] - y[i]);
  return s;
}
extern "C" void loss(const float* x, const float* y, float* out, std::int64_t n) {
  double left = 0, right = 0;
#pragma omp parallel sections
  {
#pragma omp section
    left = part(x, y, 0, n / 2);
#pragma omp section
    right = part(x, y, n / 2, n);
  }
  *out = (left + right) / n;
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

    def forward(self, x, y):
        out = torch.empty(())
        LIB.loss(P(x), P(y), P(out), N(x.numel()))
        return out
