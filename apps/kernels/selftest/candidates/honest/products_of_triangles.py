"""Leaves out the terms that a triangular matrix has as zeros."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cstring>
extern "C" void run(const float* a, const float* b, float* c, int n) {
#pragma omp parallel for schedule(dynamic, 4)
  for (int i = 0; i < n; ++i) {
    std::memset(c + i * n, 0, n * 4);
    for (int k = i; k < n; ++k) { float v = a[i * n + k]; for (int j = k; j < n; ++j) c[i * n + j] += v * b[k * n + j]; }
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
    def forward(self, a, b):
        c = torch.empty_like(a)
        LIB.run(P(a), P(b), P(c), a.shape[0])
        return c
