"""The judge's own runner under the profiler: which library is the candidate's, how it was built, and the whole way."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from apps.kernels.evaluation import EvaluationRequest, Tier, Verdict
from apps.kernels.host.report import host_report
from apps.kernels.jail.mappings import Mapped
from apps.kernels.judge import evaluate
from apps.kernels.judge.artefacts import Artefacts, Compilation
from apps.kernels.judge.profiled import built_libraries
from apps.kernels.machine import HostReport
from apps.kernels.profile.bottleneck import Cause

PROBLEM = """
import torch
from torch import nn
N = 1 << 18
class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x)
def get_inputs():
    return [torch.rand(N)]
def get_init_inputs():
    return []
"""
CANDIDATE = '''
import ctypes, os, subprocess, tempfile
import torch
from torch import nn
SOURCE = r"""
#include <cmath>
#include <cstdint>
extern "C" void squash(float *__restrict y, const float *__restrict x, int64_t n) {
  #pragma omp parallel for
  for (int64_t i = 0; i < n; i++) y[i] = tanhf(x[i]);
}
"""
def load(source):
    directory = tempfile.mkdtemp()
    path, library = os.path.join(directory, "kernel.cpp"), os.path.join(directory, "kernel.so")
    with open(path, "w") as file:
        file.write(source)
    compiler = os.environ.get("CXX", "g++")
    subprocess.run([compiler, "-O3", "-march=native", "-fopenmp", "-fPIC", "-shared", path, "-o", library], check=True)
    return ctypes.CDLL(library)
LIB = load(SOURCE)
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        LIB.squash(ctypes.c_void_p(y.data_ptr()), ctypes.c_void_p(x.data_ptr()), ctypes.c_int64(x.numel()))
        return y
'''


def packed(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def run(directory: str, source: str, output: str) -> Compilation:
    return Compilation("/usr/bin/g++", ("-O2", source, "-o", output), directory, f"{directory}/{output}", 0.1, 0, False)


def mapped(path: str, inode: int) -> Mapped:
    return Mapped(0x1000, 0x2000, "r-xp", 0, 0, inode, path)


def test_a_library_has_the_run_and_the_source_that_made_it(tmp_path: Path) -> None:
    built = Artefacts(
        packed(
            {
                "a/k.so": b"one",
                "a/k.cpp": b"int a;",
                "b/m.so": b"two",
                "b/m.cc": b"int b;",
                "b/m.o": b"",
                "c/x.so": b"no",
            }
        ),
        (run("/tmp/a", "/tmp/a/k.cpp", "k.so"), run("/tmp/b", "m.cc", "m.o")),
    )
    maps = (
        mapped("/usr/lib/libm.so.6", 1),
        mapped("/tmp/a/k.so", 7),
        mapped("/tmp/a/k.so", 7),
        mapped("/tmp/b/m.so", 8),
    )
    first, second = built_libraries(built, maps, tmp_path)
    assert (first.path.read_bytes(), first.source, first.inode) == (b"one", "int a;", 7)
    assert first.command[:2] == ("/usr/bin/g++", "-O2")
    # linked from an object: the run that compiled the source beside it
    assert (second.path.read_bytes(), second.source, second.inode) == (b"two", "int b;", 8)


def test_what_was_not_mapped_or_not_built_is_left_out(tmp_path: Path) -> None:
    assert built_libraries(Artefacts(), (mapped("/tmp/a/k.so", 7),), tmp_path) == ()
    built = Artefacts(packed({"a/k.so": b"one"}))
    assert built_libraries(built, (mapped("/usr/lib/libm.so.6", 1),), tmp_path) == ()
    (found,) = built_libraries(built, (mapped("/tmp/a/k.so", 7),), tmp_path)
    assert (found.command, found.source) == ((), "")


# Torch may copy for any candidate, while its own kernel does most of the work; each copy is a pass all the same.
COPIES = CANDIDATE.replace("y = torch.empty_like(x)", "x = x.clone()\n        y = torch.empty_like(x)")
COPIES = COPIES.replace("        return y", "        return y.clone().clone()").replace(
    "tanhf(x[i])", "x[i] * 2.0f + 0.0f * (sinf(x[i]) + tanhf(x[i]) + erff(x[i]))"
)


@pytest.mark.judge
def test_copies_that_torch_makes_are_passes_over_memory(host: HostReport) -> None:
    doubled = PROBLEM.replace("torch.tanh(x)", "x * 2")
    result = evaluate(EvaluationRequest(doubled, COPIES, tier=Tier.QUICK), host=host)
    assert result.verdict is Verdict.CORRECT, result.detail
    profile = result.profile
    assert profile.metric("torch_operations_per_call").value == 3  # type: ignore[union-attr]
    assert profile.metric("torch_bytes_per_call").value == 16 << 18  # type: ignore[union-attr]
    assert profile.bottleneck is not None and profile.bottleneck.name == Cause.PASSES.value


@pytest.mark.judge
def test_from_source_to_bottleneck() -> None:
    result = evaluate(EvaluationRequest(PROBLEM, CANDIDATE, tier=Tier.QUICK), host=host_report(quick=True))
    assert result.verdict is Verdict.CORRECT, result.detail
    profile = result.profile
    assert profile.tier in ("software", "pmu")
    assert profile.metric("compulsory_bytes").value == 8 << 18  # type: ignore[union-attr]
    assert profile.metric("flops").value == 1 << 18  # type: ignore[union-attr]
    assert profile.metric("hot_loop_calls").value == 1  # type: ignore[union-attr]
    assert any("tanhf" in remark for remark in profile.remarks)
    assert profile.metric("torch_operations_per_call").value == 0  # type: ignore[union-attr]
    assert profile.metric("torch_bytes_per_call").value == 4 << 18  # type: ignore[union-attr]
    assert profile.metric("reference_torch_operations_per_call").value == 1  # type: ignore[union-attr]
    assert profile.metric("reference_torch_bytes_per_call").value == 4 << 18  # type: ignore[union-attr]
    assert profile.bottleneck is not None
    assert profile.bottleneck.name == "library calls in the loop"
