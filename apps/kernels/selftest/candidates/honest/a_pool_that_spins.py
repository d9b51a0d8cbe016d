"""Workers of its own that stay and spin for work between calls."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <atomic>
#include <cmath>
#include <cstdint>
#include <thread>
static std::atomic<int> ticket{0}, done{0};
static const float* in; static float* out; static std::int64_t count;
static void part(int k) { for (std::int64_t i = count / 2 * k; i < (k ? count : count / 2); ++i) out[i] = in[i] / (1.0f + std::exp(-in[i])); }
static void work() { int last = 0; for (;;) { int now = ticket.load(); if (now == last) { std::this_thread::yield(); continue; } last = now; part(1); done.store(now); } }
extern "C" void swish(const float* x, float* y, std::int64_t n) {
  static bool begun = [] { std::thread(work).detach(); return true; }();
  (void)begun;
  in = x, out = y, count = n;
  int now = ticket.fetch_add(1) + 1;
  part(0);
  while (done.load() != now) std::this_thread::yield();
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
