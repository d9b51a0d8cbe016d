"""Scratch of its own in large pages, prefetched and streamed past the caches."""

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
#include <immintrin.h>
#include <sys/mman.h>
extern "C" void swish(const float* x, float* y, std::int64_t n) {
  static float* scratch = nullptr;
  static std::int64_t room = 0;
  if (room < n) {
    void* got = mmap(nullptr, (n * 4 + (2 << 20)) & ~((2l << 20) - 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(got, n * 4, MADV_HUGEPAGE);
    scratch = (float*)got, room = n;
  }
#pragma omp parallel for
  for (std::int64_t i = 0; i < n; ++i) {
    _mm_prefetch((const char*)(x + i + 64), _MM_HINT_T0);
    scratch[i] = x[i] / (1.0f + std::exp(-x[i]));
  }
#pragma omp parallel for
  for (std::int64_t i = 0; i < n; ++i) _mm_stream_si32((int*)y + i, ((int*)scratch)[i]);
  _mm_sfence();
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
        LIB.swish(P(x), P(y), N(x.numel()))
        return y
