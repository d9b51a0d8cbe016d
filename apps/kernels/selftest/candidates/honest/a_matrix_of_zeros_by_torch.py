"""Lets torch fill a matrix with zeros and writes the ones."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
extern "C" void run(const int64_t* ids, const float* w, float* y, int m, int k, int n) {
#pragma omp parallel for
  for (int i = 0; i < m; ++i) for (int j = 0; j < k; ++j) y[i * n + ids[i * k + j]] = w[i * k + j];
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
    def forward(self, ids, w):
        y = torch.zeros(ids.shape[0], 2048)
        LIB.run(P(ids), P(w), P(y), *ids.shape, 2048)
        return y
