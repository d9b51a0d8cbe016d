"""bfloat16 by integer arithmetic, rounded to nearest even."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
#include <cstring>
static inline float up(std::uint16_t v) { std::uint32_t u = (std::uint32_t)v << 16; float f; std::memcpy(&f, &u, 4); return f; }
static inline std::uint16_t down(float f) { std::uint32_t u; std::memcpy(&u, &f, 4); return (u + 0x7fff + ((u >> 16) & 1)) >> 16; }
extern "C" void mad(const std::uint16_t* x, const std::uint16_t* y, std::uint16_t* z, std::int64_t n) {
#pragma omp parallel for simd
  for (std::int64_t i = 0; i < n; ++i) z[i] = down(up(down(up(x[i]) * up(y[i]))) + up(x[i]));
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

    def forward(self, x, y):
        z = torch.empty_like(x)
        LIB.mad(P(x), P(y), P(z), N(x.numel()))
        return z
