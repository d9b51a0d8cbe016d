"""Rounds each row to multiples of its own largest value; ties fall either way."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <algorithm>
extern "C" void run(const float* x, float* y, float* z, int m, int n) {
#pragma omp parallel for
  for (int i = 0; i < m; ++i) {
    float t = 0;
    for (int j = 0; j < n; ++j) t = std::max(t, std::fabs(x[i * n + j]));
    float s = t / 127.0f, r = 1.0f / s;
    for (int j = 0; j < n; ++j) {
      float v = x[i * n + j];
      y[i * n + j] = std::min(std::max(std::nearbyint(v * r), -128.0f), 127.0f) * s;
      z[i * n + j] = std::floor(v * 10.0f) * 0.1f;
    }
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
    def forward(self, x):
        y, z = torch.empty_like(x), torch.empty_like(x)
        LIB.run(P(x), P(y), P(z), *x.shape)
        return y
