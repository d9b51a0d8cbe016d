"""Whether hardware performance counters can be read here, and if not, why and what would change it."""

from __future__ import annotations

import functools
import subprocess
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.host.processor import ROOT, read_text
from apps.kernels.host.toolchains import find_tool

_PMUS = ("cpu", "cpu_core", "armv8_pmuv3", "armv8_pmuv3_0")


@dataclass(frozen=True)
class Counters:
    """`available` is whether cycles can be counted; `detail` says by what, or why not."""

    available: bool
    detail: str


@functools.cache
def hardware_counters() -> Counters:
    """Looks for a PMU, for perf, and whether perf may count a cycle with them."""
    if not has_pmu():
        return Counters(False, "no PMU: the kernel lists no processor event source (usual in virtual machines)")
    perf = find_tool("perf")
    if perf is None:
        return Counters(False, "a PMU is there but perf is not installed (package linux-perf or linux-tools)")
    try:
        done = subprocess.run(
            [perf, "stat", "-x,", "-e", "cycles:u", "true"], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.SubprocessError) as problem:
        return Counters(False, f"perf does not run: {problem}")
    return judge_perf_answer(done.returncode, done.stderr)


def has_pmu(root: Path = ROOT) -> bool:
    """Whether the kernel lists a processor's event source; hybrid and ARM processors name theirs differently."""
    sources = root / "sys/bus/event_source/devices"
    return any((sources / name).exists() for name in _PMUS)


def judge_perf_answer(code: int, text: str, root: Path = ROOT) -> Counters:
    """What `perf stat -x, -e cycles:u true` (exit code and stderr) says about counters here."""
    paranoid = read_text(root / "proc/sys/kernel/perf_event_paranoid")
    if code != 0:
        return Counters(
            False,
            f"perf may not count here (kernel.perf_event_paranoid is {paranoid or 'unknown'}; 2 or less is needed)",
        )
    if "<not supported>" in text:
        return Counters(False, "perf says that cycles are not supported: the virtual machine passes no counters on")
    if "<not counted>" in text:
        return Counters(False, "perf could not count cycles: another program may hold the counters")
    return Counters(True, "perf stat counts cycles")
