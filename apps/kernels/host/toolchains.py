"""Which compilers and tools are installed, by what each says of its own version. Torch is found without importing it."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TOOLS = ("g++", "clang++", "llvm-mca", "objdump", "perf", "nvcc", "nvidia-smi")
# Distributions install several LLVMs side by side under versioned names; the newest counts.
_VERSIONED = {"clang++", "llvm-mca"}
_ARGUMENTS = {"nvidia-smi": ("--query-gpu=driver_version", "--format=csv,noheader")}


def toolchains() -> dict[str, str]:
    """Version by tool for what is installed here, `python` always among them."""
    found = {"python": sys.version.split()[0]}
    for tool in TOOLS:
        path = find_tool(tool)
        version = tool_version(path, *_ARGUMENTS.get(tool, ("--version",))) if path else None
        if version:
            found[tool] = version
    return found


def torch_version() -> str | None:
    """The installed torch's version from its metadata, or None."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def host_compiler() -> str | None:
    """Path of the C++ compiler: $CXX where set, else g++, else clang++; None where there is none."""
    chosen = os.environ.get("CXX", "")
    return (shutil.which(chosen) if chosen else None) or find_tool("g++") or find_tool("clang++")


@functools.cache
def find_tool(name: str) -> str | None:
    """Path of a tool on PATH, the newest of versioned names for those that have them; None where there is none."""
    candidates = {0: shutil.which(name)} if shutil.which(name) else {}
    if name in _VERSIONED:
        for directory in map(Path, os.get_exec_path()):
            for path in directory.glob(f"{name}-[0-9]*"):
                suffix = path.name.removeprefix(f"{name}-")
                if suffix.isdigit() and os.access(path, os.X_OK):
                    candidates.setdefault(int(suffix), str(path))
    return candidates[max(candidates)] if candidates else None


@functools.cache
def tool_version(path: str, *arguments: str) -> str | None:
    """The version number in what the tool prints, its first line where there is none, None where it doesn't run."""
    try:
        done = subprocess.run([path, *(arguments or ("--version",))], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    if done.returncode != 0:
        return None
    release = re.search(r"release (\d+\.\d+)", done.stdout)  # nvcc names its release after a copyright year
    number = release or re.search(r"\b(\d+\.\d+(?:\.\d+)*)\b", done.stdout)
    return number[1] if number else next(iter(done.stdout.splitlines()), None)
