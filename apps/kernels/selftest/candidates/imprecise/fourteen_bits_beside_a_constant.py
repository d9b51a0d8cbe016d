"""Fourteen bits of a swish, beside a constant that the reference makes from its input."""

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
#include <cstring>
extern "C" void run(const float* x, float* y, long n) {
#pragma omp parallel for simd schedule(static)
  for (long i = 0; i < n; ++i) {
    float t = x[i] * -1.44269504f;
    t = t < -126 ? -126 : t > 126 ? 126 : t;
    float w = std::floor(t), f = t - w, e;
    float q = ((0.0551716685f * f + 0.2426111400f) * f + 0.6932644248f) * f + 0.9999253750f;
    std::int32_t bits = ((std::int32_t)w + 127) << 23;
    std::memcpy(&e, &bits, 4);
    float s = x[i] / (q * e + 1);
    y[i] = s > -0.2f ? s : -0.2f;
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
        y = torch.empty_like(x)
        LIB.run(P(x), P(y), ctypes.c_long(x.numel()))
        return y
