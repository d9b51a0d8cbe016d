"""Problem and candidate sources that the pages' tests and screenshots show: written in the product's own style."""

from __future__ import annotations

SOFTSIGN = '''"""Soft-sign over a large batch: x / (1 + |x|)."""

import torch
from torch import nn

BATCH = 4096
FEATURES = 768


class Model(nn.Module):
    """Element-wise soft-sign."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / (1 + torch.abs(x))


def get_inputs():
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return []
'''

LAYER_NORM = '''"""Layer norm over the last axis."""

import torch
from torch import nn

ROWS = 8192
WIDTH = 1024


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs():
    return [WIDTH]
'''

_CANDIDATE = '''import ctypes
import hashlib
import pathlib
import subprocess
import tempfile

import torch
from torch import nn

SOURCE = r"""
#include <cmath>
#include <cstdint>
{includes}
extern "C" void softsign(const float* __restrict x, float* __restrict y, std::int64_t n) {{
{body}
}}
"""
FLAGS = {flags}


def load(source: str, flags: list[str]) -> ctypes.CDLL:
    """The library of `source`, compiled once."""
    digest = hashlib.sha256((source + " ".join(flags)).encode()).hexdigest()[:16]
    path = pathlib.Path(tempfile.gettempdir()) / f"softsign-{{digest}}.so"
    if not path.exists():
        command = ["g++", "-x", "c++", "-", "-shared", "-fPIC", *flags, "-o", str(path)]
        subprocess.run(command, input=source.encode(), check=True)
    return ctypes.CDLL(str(path))


class ModelNew(nn.Module):
    """Soft-sign in one pass over memory."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = load(SOURCE, FLAGS).softsign

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.empty_like(x)
        self.kernel(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_int64(x.numel()))
        return y
'''

_PLAIN = """  for (std::int64_t i = 0; i < n; ++i)
    y[i] = x[i] / (1.0f + std::fabs(x[i]));"""
_WRONG = """#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i + 16 <= n; i += 16)
    for (int lane = 0; lane < 16; ++lane)
      y[i + lane] = x[i + lane] / (1.0f + std::fabs(x[i + lane]));"""
_PARALLEL = """#pragma omp parallel for simd schedule(static)
  for (std::int64_t i = 0; i < n; ++i)
    y[i] = x[i] / (1.0f + std::fabs(x[i]));"""
_STREAMED = """  constexpr std::int64_t BLOCK = 8192;
#pragma omp parallel for schedule(static)
  for (std::int64_t b = 0; b < n; b += BLOCK) {
    const std::int64_t end = b + BLOCK < n ? b + BLOCK : n;
    const __m512 one = _mm512_set1_ps(1.0f);
    std::int64_t i = b;
    for (; i + 16 <= end; i += 16) {
      const __m512 v = _mm512_loadu_ps(x + i);
      _mm512_stream_ps(y + i, _mm512_div_ps(v, _mm512_add_ps(one, _mm512_abs_ps(v))));
    }
    for (; i < end; ++i)
      y[i] = x[i] / (1.0f + std::fabs(x[i]));
  }"""


def _candidate(body: str, flags: str, includes: str = "") -> str:
    return _CANDIDATE.format(body=body, flags=flags, includes=includes)


SOFTSIGN_VERSIONS = (
    _candidate(_PLAIN, '["-O3", "-march=native"]'),
    _candidate(_WRONG, '["-O3", "-march=native", "-fopenmp"]'),
    _candidate(_PARALLEL, '["-O3", "-march=native", "-fopenmp"]'),
    _candidate(
        _STREAMED,
        '["-O3", "-march=native", "-mprefer-vector-width=512", "-fopenmp"]',
        "#include <immintrin.h>\n",
    ),
)
