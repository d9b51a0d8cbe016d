"""A worker that stays between calls and waits; each call waits for it."""

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
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
struct Pool {
  std::mutex lock;
  std::condition_variable changed;
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t from = 0, to = 0;
  bool busy = false;
  Pool() { std::thread(&Pool::work, this).detach(); }
  void work() {
    for (;;) {
      std::unique_lock<std::mutex> held(lock);
      changed.wait(held, [this] { return busy; });
      for (std::int64_t i = from; i < to; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i]));
      busy = false;
      changed.notify_all();
    }
  }
};
extern "C" void pooled(const float* x, float* y, std::int64_t n) {
  static Pool* pool = new Pool;
  {
    std::unique_lock<std::mutex> held(pool->lock);
    pool->x = x, pool->y = y, pool->from = n / 2, pool->to = n, pool->busy = true;
  }
  pool->changed.notify_all();
  for (std::int64_t i = 0; i < n / 2; ++i) y[i] = x[i] / (1.0f + std::exp(-x[i]));
  std::unique_lock<std::mutex> held(pool->lock);
  pool->changed.wait(held, [] { return !pool->busy; });
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
        LIB.pooled(P(x), P(y), N(x.numel()))
        return y
