"""Two outputs; a number and a boolean among its inputs."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
extern "C" void both(const float* x, float* y, float* z, float f, int m, int n) {
#pragma omp parallel for
  for (int i = 0; i < m; ++i) {
    float t = 0;
    for (int j = 0; j < n; ++j) {
      float v = x[i * n + j];
      y[i * n + j] = v * f;
      t = std::fabs(v) > t ? std::fabs(v) : t;
    }
    z[i] = t;
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

    def forward(self, x, scale, flip):
        y, z = torch.empty_like(x), torch.empty(x.shape[0])
        LIB.both(P(x), P(y), P(z), ctypes.c_float(-scale if flip else scale), x.shape[0], x.shape[1])
        return y, z
