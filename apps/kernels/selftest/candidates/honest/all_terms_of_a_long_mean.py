"""All terms of the mean of two million."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
extern "C" void run(const float* x, const float* t, float* y, long m, long n, int skip) {
  double s = 0;
  long count = 0;
#pragma omp parallel for reduction(+ : s, count)
  for (long i = 0; i < m; ++i) {
    float part = 0;
    long last = skip ? n - n / skip : n;
#pragma omp simd reduction(+ : part)
    for (long j = 0; j < last; ++j) part += std::fmax(1 - x[i * n + j] * t[i * n + j], 0.f);
    s += part;
    count += last;
  }
  *y = s / count;
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

    def forward(self, x, t):
        y = torch.empty(())
        skip = 0
        LIB.run(P(x), P(t), P(y), N(x.shape[0]), N(x.shape[1]), skip)
        return y
