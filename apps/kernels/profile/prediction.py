"""What llvm-mca predicts for a loop: cycles an iteration, and the bound it would reach if nothing depended on anything."""

from __future__ import annotations

import functools
import re
import subprocess
from dataclasses import dataclass

from apps.kernels.host.toolchains import find_tool, tool_version
from apps.kernels.profile.disassembly import Loop
from apps.kernels.profile.tool import ToolFailed, run_tool

# Version 16 mispredicts Zen 4 where 19 is within 3% of what was measured; older models of newer cores are guesses.
OLDEST_VERSION = 19
_ITERATIONS = 100
_MOST_INSTRUCTIONS = 400


@dataclass(frozen=True)
class Prediction:
    """Cycles an iteration, cycles by throughput alone, and the share of cycles lost to register dependencies (0 to 1)."""

    cycles: float
    throughput_cycles: float
    dependency_pressure: float


@functools.cache
def why_no_predictions() -> str | None:
    """None where loops can be predicted here, else why not."""
    tool = find_tool("llvm-mca")
    if tool is None:
        return f"llvm-mca is not installed (package llvm, version {OLDEST_VERSION} or newer)"
    version = tool_version(tool) or "0"
    if int(version.split(".")[0]) < OLDEST_VERSION:
        return f"llvm-mca {version} does not know current processors well enough; {OLDEST_VERSION} or newer is needed"
    if host_cpu() in ("", "generic"):
        return "llvm-mca does not recognise this processor"
    return None


@functools.cache
def host_cpu() -> str:
    """LLVM's name of this processor, such as znver4, empty where llvm-mca can't say."""
    tool = find_tool("llvm-mca")
    if tool is None:
        return ""
    try:
        text = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    found = re.search(r"Host CPU:\s*(\S+)", text)
    return found[1] if found else ""


def predict(loop: Loop) -> Prediction | None:
    """llvm-mca's account of a loop, None for one that calls out, is too long, or is not understood."""
    tool = find_tool("llvm-mca")
    if tool is None or why_no_predictions() or len(loop.instructions) > _MOST_INSTRUCTIONS:
        return None
    if any(i.mnemonic.startswith("call") for i in loop.instructions):
        return None
    command = [tool, "-mtriple=x86_64", f"-mcpu={host_cpu()}", f"-iterations={_ITERATIONS}", "-bottleneck-analysis"]
    command += ["-instruction-info=false", "-resource-pressure=false"]
    try:
        return read_report(run_tool(command, seconds=15, text=_assembly(loop), reading=[]).output)
    except ToolFailed:
        return None


def read_report(text: str) -> Prediction | None:
    """The figures in llvm-mca's summary."""

    def figure(label: str) -> float | None:
        found = re.search(rf"{label}:?\s*\[?\s*([\d.]+)", text)
        return float(found[1]) if found else None

    cycles, iterations = figure("Total Cycles"), figure("Iterations")
    throughput = figure("Block RThroughput")
    if cycles is None or not iterations or throughput is None:
        return None
    pressure = figure("- Register Dependencies") or 0.0
    return Prediction(cycles / iterations, throughput, pressure / 100)


def _assembly(loop: Loop) -> str:
    """The loop as a file: every jump goes to its head, since only the straight line through it is modelled."""
    lines = [".Lhead:"]
    for instruction in loop.instructions:
        if instruction.mnemonic.startswith("j"):
            lines.append(f"{instruction.mnemonic} .Lhead")
        else:
            lines.append(f"{instruction.mnemonic} {','.join(instruction.operands)}")
    return "\n".join(lines) + "\n"
