"""Scales the bytes of an image by constant buffers."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
extern "C" void run(const uint8_t* x, const float* mean, const float* std, float* y, long n) {
  float t[256][3];
  for (int i = 0; i < 256; ++i) for (int c = 0; c < 3; ++c) t[i][c] = (i * (1.0f / 255.0f) - mean[c]) / std[c];
#pragma omp parallel for
  for (long i = 0; i < n; ++i) for (int c = 0; c < 3; ++c) y[i * 3 + c] = t[x[i * 3 + c]][c];
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
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]))

    def forward(self, x):
        n, h, w, c = x.shape
        y = torch.empty((n, c, h, w), memory_format=torch.channels_last)
        LIB.run(P(x), P(self.mean), P(self.std), P(y), N(n * h * w))
        return y
