"""Takes any size, and takes it for granted that rows lie without gaps."""

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
#include <cstdlib>
using std::int64_t;

extern "C" void softmax(const float* x, float* y, int64_t m, int64_t n) {
#pragma omp parallel for
  for (int64_t i = 0; i < m; ++i) {
    const float* r = x + i * n;
    float top = r[0];
    double sum = 0;
    for (int64_t j = 1; j < n; ++j) top = r[j] > top ? r[j] : top;
    for (int64_t j = 0; j < n; ++j) sum += y[i * n + j] = std::exp(r[j] - top);
    for (int64_t j = 0; j < n; ++j) y[i * n + j] /= sum;
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
        y = torch.empty(x.shape)
        LIB.softmax(P(x), P(y), *map(N, x.shape))
        return y
