"""The split of a quick and a full judgement in seconds, from source to verdict, with and without a profile.

    python bench/judgement.py [PROBLEM.py CANDIDATE.py] [--repeat 3] [--tier quick|full|both]

Without arguments a soft-sign over 4 MB and a plain C kernel for it. The zygote is started first and its start is shown
apart: importing torch is paid once, not for each candidate.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from apps.kernels.evaluation import EvaluationRequest, Policy, Tier
from apps.kernels.jail import Zygote
from apps.kernels.judge import evaluate

PROBLEM = """
import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x): return x / (1 + x.abs())
def get_inputs(): return [torch.randn(64, 16384)]
def get_init_inputs(): return []
"""
CANDIDATE = '''
import ctypes, os, subprocess, tempfile
import torch
from torch import nn
SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void softsign(const float* __restrict x, float* __restrict y, int64_t n) {
#pragma omp parallel for simd schedule(static)
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] / (1.0f + std::fabs(x[i]));
}
"""
def load(source):
    directory = tempfile.mkdtemp()
    text, so = os.path.join(directory, "k.cpp"), os.path.join(directory, "k.so")
    with open(text, "w") as file:
        file.write(source)
    command = [os.environ.get("CXX", "g++"), "-O3", "-march=native", "-fopenmp", "-shared", "-fPIC", text, "-o", so]
    subprocess.run(command, check=True)
    return ctypes.CDLL(so)
LIB = load(SOURCE)
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        LIB.softsign(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()), ctypes.c_int64(x.numel()))
        return y
'''


def main() -> int:
    """Judge and print where the seconds went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--tier", choices=("quick", "full", "both"), default="both")
    parser.add_argument("--library", action="store_true", help="judge under policy library")
    options = parser.parse_args()
    problem, candidate = (Path(p).read_text() for p in options.paths) if options.paths else (PROBLEM, CANDIDATE)
    tiers = [Tier.QUICK, Tier.FULL] if options.tier == "both" else [Tier(options.tier)]
    started = time.monotonic()
    with Zygote() as zygote:
        print(f"zygote (importing torch, once): {time.monotonic() - started:.2f} s")
        for tier in tiers:
            for profile in (False, True):
                for _ in range(options.repeat):
                    policy = Policy.LIBRARY if options.library else Policy.KERNEL
                    found = evaluate(
                        EvaluationRequest(problem, candidate, policy=policy, tier=tier, profile=profile), zygote=zygote
                    )
                    parts = ", ".join(
                        f"{name} {seconds:.2f}" for name, seconds in found.split.items() if seconds >= 0.005
                    )
                    profiled = "with profile" if profile else "no profile"
                    speedup = f"{found.speedup:.2f}x" if found.speedup else found.detail.splitlines()[0][:60]
                    print(
                        f"{tier.value:5} {profiled:12} {found.seconds:6.2f} s  {found.verdict.value} {speedup}  ({parts})",
                        flush=True,
                    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
