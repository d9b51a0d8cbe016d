"""Sums of several kinds side by side."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
extern "C" void run(const float* x, float* y, int m, int n, int part) {
#pragma omp parallel for
  for (int i = 0; i < m; ++i) {
    double s = 0, q = 0, f = 0;
    for (int j = 0; j < n / part; ++j) s += x[(long)i * n + j];
    for (int j = 0; j < n; ++j) {
      double v = x[(long)i * n + j];
      q += v * v;
      f += v * v * v * v;
    }
    y[3 * i] = s / (n / part);
    y[3 * i + 1] = q;
    y[3 * i + 2] = f;
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
        y = torch.empty(x.shape[0], 3)
        LIB.run(P(x), P(y), *x.shape, 1)
        return y
