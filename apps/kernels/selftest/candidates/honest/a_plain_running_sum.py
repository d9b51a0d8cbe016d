"""Sums its rows one term after the other, as one first writes it."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
extern "C" void softmax(const float* x, float* y, int m, int n) {
#pragma omp parallel for
  for (int i = 0; i < m; ++i) {
    const float* r = x + i * n;
    float* out = y + i * n;
    float top = r[0], sum = 0;
    for (int j = 1; j < n; ++j) top = r[j] > top ? r[j] : top;
    for (int j = 0; j < n; ++j) sum += out[j] = std::exp(r[j] - top);
    for (int j = 0; j < n; ++j) out[j] /= sum;
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


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        y = torch.empty_like(x)
        LIB.softmax(P(x), P(y), *x.shape)
        return y
