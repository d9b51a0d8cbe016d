"""Updates mean and variance, not how many batches there were."""

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
extern "C" void norm(const float* x, const float* w, const float* b, float* rm, float* rv, float* y, int64_t rows, int64_t c) {
#pragma omp parallel for
  for (int64_t j = 0; j < c; ++j) {
    double s = 0, q = 0;
    for (int64_t i = 0; i < rows; ++i) s += x[i * c + j];
    s /= rows;
    for (int64_t i = 0; i < rows; ++i) q += (x[i * c + j] - s) * (x[i * c + j] - s);
    double v = q / rows;
    for (int64_t i = 0; i < rows; ++i) y[i * c + j] = (x[i * c + j] - s) / std::sqrt(v + 1e-5) * w[j] + b[j];
    rm[j] = 0.9 * rm[j] + 0.1 * s;
    rv[j] = 0.9 * rv[j] + 0.1 * q / (rows - 1);
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
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(256)

    def forward(self, x):
        y = torch.empty_like(x)
        m = self.norm
        LIB.norm(P(x), P(m.weight), P(m.bias), P(m.running_mean), P(m.running_var), P(y), N(x.shape[0]), N(x.shape[1]))
        return y
