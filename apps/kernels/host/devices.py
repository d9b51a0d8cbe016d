"""The devices of this host: its CPU always, its GPUs as nvidia-smi lists them."""

from __future__ import annotations

import subprocess

from apps.kernels.host.processor import Processor
from apps.kernels.host.toolchains import find_tool
from apps.kernels.machine import DeviceReport

_QUERY = ("--query-gpu=index,name,memory.total", "--format=csv,noheader,nounits")


def devices(here: Processor, memory_bytes: int, languages: tuple[str, ...]) -> tuple[DeviceReport, ...]:
    """The CPU with the languages that can be judged on it, then each GPU.

    GPUs are listed without languages: judging on them is not built yet, and nothing is promised that can't be done.
    """
    return (DeviceReport("cpu", "cpu", here.model, memory_bytes, languages), *graphics_processors())


def graphics_processors() -> tuple[DeviceReport, ...]:
    """GPUs by nvidia-smi, none where it is missing or fails."""
    tool = find_tool("nvidia-smi")
    if tool is None:
        return ()
    try:
        done = subprocess.run([tool, *_QUERY], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ()
    return read_listing(done.stdout) if done.returncode == 0 else ()


def read_listing(text: str) -> tuple[DeviceReport, ...]:
    """Devices from lines of `index, name, MiB`; a memory that is not a number counts as unknown (0)."""
    found = []
    for line in text.splitlines():
        parts = [part.strip() for part in line.split(",")]
        if len(parts) == 3 and parts[0].isdigit():
            mebibytes = int(parts[2]) if parts[2].isdigit() else 0
            found.append(DeviceReport(f"cuda:{parts[0]}", "gpu", parts[1], mebibytes << 20, ()))
    return tuple(found)
