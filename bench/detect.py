"""Is a small true difference found? The same kernel doing 5% more rows, and 1%, against itself.

    python bench/detect.py [--kernels NAME ...] [--judgements 10] [--more 0.05 0.01] [--seconds 3000] [--out FILE]

A memory-bound and a compute-bound kernel (about 10 ms each with two threads) are judged in full against the same kernel with
more rows to do: each thread does some of its own rows again, so that no two threads ever write the same row.
Prints a row a judgement; exit code 1 if one was called the wrong way. At 5% nine in ten should be called faster; at 1%
none slower. Results are kept in --out, so that a second start goes on where the first ended.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from apps.kernels.evaluation import EvaluationRequest
from apps.kernels.jail import Zygote
from apps.kernels.judge import HostCannotJudge, ProblemRefused, evaluate
from apps.kernels.judge.statistics import log_ratios, median

ROOT = Path(__file__).resolve().parent.parent
MEMORY = (
    """import torch
from torch import nn

rows, features = 4096, 4096


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x / (1 + torch.abs(x))


def get_inputs():
    return [torch.randn(rows, features)]


def get_init_inputs():
    return []
""",
    "out[i] = in[i] / (1.0f + __builtin_fabsf(in[i]));",
)
COMPUTE = (
    """import torch
from torch import nn

rows, features = 768, 512


class Model(nn.Module):
    def forward(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return x @ w


def get_inputs():
    return [torch.randn(rows, features), torch.randn(features, features)]


def get_init_inputs():
    return []
""",
    "out[i] = 0; } for (int64_t k = 0; k < features; ++k) for (int64_t i = 0; i < features; ++i) { "
    "out[i] += in[k] * w[k * features + i];",
)
KERNELS = {"memory-bound": MEMORY, "compute-bound": COMPUTE}
CANDIDATE = '''
import ctypes, os, subprocess, tempfile
import torch
from torch import nn

SOURCE = r"""
#include <cstdint>
#include <omp.h>
extern "C" void run(const float* x, const float* __restrict w, float* y, int64_t rows, int64_t features, int64_t more) {
#pragma omp parallel
  {
    const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    const int64_t first = rows * thread / threads, end = rows * (thread + 1) / threads;
    const int64_t again = more * (thread + 1) / threads - more * thread / threads;
    for (int64_t n = first; n < end + again; ++n) {
      const int64_t r = n < end ? n : n - end + first;
      const float* __restrict in = x + r * features;
      float* __restrict out = y + r * features;
      for (int64_t i = 0; i < features; ++i) { BODY }
    }
  }
}
"""


def load():
    directory = tempfile.mkdtemp()
    text, library = os.path.join(directory, "kernel.cpp"), os.path.join(directory, "kernel.so")
    with open(text, "w") as file:
        file.write(SOURCE)
    flags = ["-O3", "-march=native", "-mprefer-vector-width=512", "-fopenmp", "-std=c++17", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, text, "-o", library], check=True)
    return ctypes.CDLL(library)


LIBRARY = load()


class ModelNew(nn.Module):
    def forward(self, x, w=None):
        y = torch.empty_like(x)
        rows, features = x.shape
        LIBRARY.run(
            ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(x.data_ptr() if w is None else w.data_ptr()),
            ctypes.c_void_p(y.data_ptr()),
            ctypes.c_int64(rows), ctypes.c_int64(features), ctypes.c_int64(int(rows * MORE)),
        )
        return y
'''


def main() -> int:
    """Judge, print, sum up."""
    options = _options()
    kept: dict[str, dict[str, object]] = json.loads(options.out.read_text()) if options.out.exists() else {}
    started = time.monotonic()
    with Zygote() as zygote:
        for name, more, number in itertools.product(options.kernels, options.more, range(options.judgements)):
            key = f"{name} {more:g} #{number}"
            if key not in kept and time.monotonic() - started < options.seconds:
                kept[key] = _judge(KERNELS[name], more, zygote)
                options.out.parent.mkdir(parents=True, exist_ok=True)
                options.out.write_text(json.dumps(kept, indent=1))
            if key in kept:
                print(key, kept[key], flush=True)
    return _sum_up(kept, options.more)


def _judge(problem: tuple[str, str], more: float, zygote: Zygote) -> dict[str, object]:
    reference, body = problem
    less = CANDIDATE.replace("BODY", body).replace("MORE", "0.0")
    against = CANDIDATE.replace("BODY", body).replace("MORE", repr(more))
    started = time.monotonic()
    try:
        found = evaluate(EvaluationRequest(reference, less, against=against, profile=False), zygote=zygote)
    except (ProblemRefused, HostCannotJudge) as refusal:
        return {"refused": str(refusal).splitlines()[0]}
    speedup, candidate = found.timing.speedup, found.timing.candidate
    if speedup is None or candidate is None or found.timing.outcome is None:
        return {"refused": f"{found.verdict.value}: {found.detail[:200]}"}
    return {
        "ms": candidate.median_ms,
        "ratio": speedup.median,
        "interval": speedup.decision_interval,
        "groups": [round(median(log_ratios(s.reference_us, s.candidate_us)), 4) for s in found.timing.samples],
        "margin": speedup.margin,
        "outcome": found.timing.outcome.value,
        "notes": found.timing.notes,
        "seconds": round(time.monotonic() - started, 1),
    }


def _sum_up(kept: dict[str, dict[str, object]], shares: list[float]) -> int:
    wrong = 0
    for name in KERNELS:
        for more in shares:
            rows = [row for key, row in kept.items() if key.startswith(f"{name} {more:g} ")]
            outcomes = [str(row.get("outcome", "none")) for row in rows]
            counts = {word: outcomes.count(word) for word in sorted(set(outcomes))}
            wrong += counts.get("slower", 0)
            if rows:
                print(f"{name}, {more:.0%} more rows: {counts}")
    return 1 if wrong else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=10, help="of each kernel and each difference")
    parser.add_argument("--kernels", nargs="+", choices=KERNELS, default=list(KERNELS), help="which of the two")
    parser.add_argument("--more", type=float, nargs="+", default=[0.05, 0.01], help="shares of more rows to find")
    parser.add_argument("--seconds", type=float, default=3000, help="start no judgement after this long")
    parser.add_argument("--out", type=Path, default=ROOT / "var" / "detect.json", help="where results are kept")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
