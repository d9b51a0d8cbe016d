"""Memory for its outputs from an arena of its own, given back when the tensor goes."""

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
#include <map>
#include <vector>
static std::map<std::int64_t, std::vector<void*>> idle;
extern "C" void* take(std::int64_t n) { auto& v = idle[n]; if (v.empty()) return aligned_alloc(64, (n * 4 + 63) / 64 * 64); void* p = v.back(); v.pop_back(); return p; }
extern "C" void give(void* p, std::int64_t n) { idle[n].push_back(p); }
extern "C" void swish(const float* x, float* y, std::int64_t n) {
#pragma omp parallel for
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i]));
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


LIB.take.restype = ctypes.c_void_p


class Memory:
    def __init__(self, count):
        self.count = count
        self.at = LIB.take(N(count))
        self.__array_interface__ = {"shape": (count,), "typestr": "<f4", "data": (self.at, False), "version": 3}

    def buffer(self):
        held = (ctypes.c_float * self.count).from_address(self.at)
        held.owner = self
        return held

    def __del__(self):
        LIB.give(ctypes.c_void_p(self.at), N(self.count))


class ModelNew(nn.Module):
    def __init__(self, *init):
        super().__init__()

    def forward(self, x):
        y = torch.frombuffer(Memory(x.numel()).buffer(), dtype=torch.float32).view(x.shape)
        LIB.swish(P(x), P(y), N(x.numel()))
        return y
