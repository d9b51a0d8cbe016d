"""The largest of each two by two."""

import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
extern "C" void pool(const float* x, float* y, int planes, int h, int w) {
#pragma omp parallel for
  for (int p = 0; p < planes; ++p)
    for (int i = 0; i < h / 2; ++i)
      for (int j = 0; j < w / 2; ++j) {
        const float* r = x + (p * h + 2 * i) * w + 2 * j;
        float t = r[0];
        t = r[1] > t ? r[1] : t;
        t = r[w] > t ? r[w] : t;
        y[(p * (h / 2) + i) * (w / 2) + j] = r[w + 1] > t ? r[w + 1] : t;
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
        b, c, h, w = x.shape
        y = torch.empty(b, c, h // 2, w // 2)
        LIB.pool(P(x), P(y), b * c, h, w)
        return y
