"""Kernels whose profile is known, built with the host's compiler and running in a process of their own."""

from __future__ import annotations

import select
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from apps.kernels.evaluation import Profile
from apps.kernels.facts import ProblemFacts, TensorFact
from apps.kernels.host.ceilings import measure_ceilings
from apps.kernels.host.report import host_report
from apps.kernels.host.toolchains import find_tool
from apps.kernels.jail import freeze
from apps.kernels.machine import HostReport
from apps.kernels.profile.candidate import profile_candidate
from apps.kernels.profile.runner import BuiltLibrary, RunnerGone

FLAGS = ("-O3", "-march=native", "-mprefer-vector-width=512", "-fopenmp", "-std=c++17", "-fPIC", "-shared")
PRELUDE = r"""
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
static float *make(int64_t n, float value) {
  float *p = static_cast<float *>(std::aligned_alloc(1 << 21, (n * 4 + (1 << 21) - 1) >> 21 << 21));
  #pragma omp parallel for
  for (int64_t i = 0; i < n; i++) p[i] = value;
  return p;
}
"""


class KernelProcess:
    """`ProfiledRunner` over a child process that knows nothing but ctypes."""

    def __init__(self, library: BuiltLibrary) -> None:
        self.libraries = (library,)
        child = Path(__file__).with_name("kernel_process.py")
        command = [sys.executable, "-S", str(child), str(library.path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answer()

    @property
    def pid(self) -> int:
        return self.process.pid

    def call(self, n: int) -> float:
        return float(self._ask(f"call {n}"))

    def set_threads(self, k: int) -> None:
        self._ask(f"threads {k}")

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _ask(self, line: str) -> str:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except (OSError, ValueError):
            raise RunnerGone("the kernel's process has ended") from None
        return self._answer()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        while (look := freeze.watcher(self.pid)) and not select.select([self.process.stdout], [], [], 0.002)[0]:
            look()
        answer = self.process.stdout.readline()
        if not answer:
            raise RunnerGone("the kernel's process has ended")
        return answer.strip()


Build = Callable[..., BuiltLibrary]
Start = Callable[..., KernelProcess]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Compiles a kernel's source (after the prelude) into a library."""
    compiler = find_tool("g++")
    if compiler is None:
        pytest.skip("needs g++ (package g++)")

    def built(source: str, *flags: str) -> BuiltLibrary:
        place = tmp_path_factory.mktemp("kernel")
        text = PRELUDE + source
        (place / "kernel.cpp").write_text(text)
        command = (compiler, *FLAGS, *flags, str(place / "kernel.cpp"), "-o", str(place / "kernel.so"))
        subprocess.run(command, check=True, timeout=60)
        return BuiltLibrary(place / "kernel.so", command, text)

    return built


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a library's process; it ends with the test."""
    with ExitStack() as stack:

        def started(library: BuiltLibrary) -> KernelProcess:
            process = KernelProcess(library)
            stack.callback(process.close)
            return process

        yield started


@pytest.fixture(scope="session")
def host() -> HostReport:
    """This host with ceilings measured in a few seconds; enough to tell a roof from a tenth of it."""
    return replace(host_report(quick=True), ceilings=measure_ceilings(budget_ms=6, rounds=2).ceilings)


def problem(read_bytes: int, written_bytes: int, flops: int) -> ProblemFacts:
    """Facts of a problem that reads and writes so much."""
    inputs = (TensorFact("x", "input", "float32", (read_bytes // 4,), (1,), read_bytes),) if read_bytes else ()
    outputs = (TensorFact("y", "output", "float32", (written_bytes // 4,), (1,), written_bytes),)
    return ProblemFacts(inputs=inputs, outputs=outputs, flops=flops, compulsory_bytes=read_bytes + written_bytes)


@pytest.fixture
def profiled(build: Build, start: Start, host: HostReport) -> Callable[..., Profile]:
    """Builds, starts and profiles a kernel: source, facts, then what `profile_candidate` takes."""

    def made(source: str, facts: ProblemFacts, *flags: str, **options: object) -> Profile:
        runner = start(build(source, *flags))
        return profile_candidate(facts, runner, host, **({"seconds": 0.8} | options))  # type: ignore[arg-type]

    return made
