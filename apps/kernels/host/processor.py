"""The processor and memory this process may use, read from Linux's files. Nothing here runs a program.

Each function takes `root`, the directory that stands for `/`, so that another machine's files can be read too.
"""

from __future__ import annotations

import functools
import math
import os
import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from apps.kernels.machine import Cache

ROOT = Path("/")
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Processor:
    """Model name, logical processors this process may use, widest vector in bits, and data caches from L1 down."""

    model: str
    cores: int
    vector_bits: int
    caches: tuple[Cache, ...]

    def bytes_in_all(self, cache: Cache) -> int:
        """Bytes of all caches of this kind that its cores have: as many as it takes to serve each of them."""
        return cache.bytes * math.ceil(self.cores / cache.shared_by)


@functools.cache
def processor() -> Processor:
    """This machine's processor as this process sees it."""
    return Processor(cpu_model(), usable_cores(), vector_bits(), data_caches())


def read_text(path: Path) -> str:
    """A small file's text without its last newline, or an empty string where it can't be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def cpu_model(root: Path = ROOT) -> str:
    """The processor's name: `model name` on x86, implementer and part on ARM, else the architecture."""
    fields = _cpuinfo(root)
    name = fields.get("model name") or fields.get("Model") or fields.get("cpu model")
    if name:
        return re.sub(r"\s+", " ", name)
    if "CPU part" in fields:
        return f"{platform.machine()} implementer {fields.get('CPU implementer', '?')} part {fields['CPU part']}"
    return platform.processor() or platform.machine()


def vector_bits(root: Path = ROOT) -> int:
    """Bits of the widest vector register that compilers use here: 512, 256, 128, or 64 where there is none."""
    fields = _cpuinfo(root)
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    for flag, bits in (("avx512f", 512), ("avx", 256), ("sse2", 128), ("asimd", 128), ("neon", 128)):
        if flag in flags:
            return bits
    return 64


def usable_cores(root: Path = ROOT) -> int:
    """Logical processors of this process's affinity, less where a control group's quota allows fewer."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota(root)
    return max(1, allowed if quota is None else min(allowed, math.ceil(quota)))


def cpu_quota(root: Path = ROOT) -> float | None:
    """Processors' worth of time that the control groups above this process allow, or None for no limit."""
    limits = []
    for directory in _control_groups(root, "cpu"):
        quota, period = "", ""
        if words := read_text(directory / "cpu.max").split():
            quota, period = words[0], words[-1]
        elif text := read_text(directory / "cpu.cfs_quota_us"):
            quota, period = text, read_text(directory / "cpu.cfs_period_us")
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            limits.append(int(quota) / int(period))
    return min(limits, default=None)


def usable_memory(root: Path = ROOT) -> int:
    """Bytes of main memory, less where a control group's limit allows fewer."""
    total = _memory_of_all(root, "MemTotal")
    limits = [limit for limit, _, _ in _memory_limits(root)]
    return min([total, *limits] if total else limits, default=0)


def available_memory(root: Path = ROOT) -> int:
    """Bytes of main memory that can still be had: what the kernel says, less where a control group's limit leaves fewer."""
    left = [_memory_of_all(root, "MemAvailable") or 4 << 30]
    for limit, directory, name in _memory_limits(root):
        used = read_text(directory / name)
        if used.isdigit():
            left.append(max(0, limit - int(used) + _reclaimable(directory)))
    return min(left)


def _memory_of_all(root: Path, name: str) -> int:
    """Bytes of what /proc/meminfo lists under that name; 0 where it doesn't."""
    match = re.search(rf"^{name}:\s+(\d+) kB", read_text(root / "proc/meminfo"), re.M)
    return int(match[1]) << 10 if match else 0


def _memory_limits(root: Path) -> Iterator[tuple[int, Path, str]]:
    """Limits in bytes of the control groups above this process, each with its directory and the file that tells its use."""
    for directory in _control_groups(root, "memory"):
        for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
            text = read_text(directory / limit)
            if text.isdigit():
                yield int(text), directory, used


def _reclaimable(directory: Path) -> int:
    """Bytes of files' pages that a control group gives back when it needs room."""
    words = read_text(directory / "memory.stat").split()
    stat = dict(zip(words[::2], words[1::2], strict=False))
    known = [stat[name] for name in ("inactive_file", "active_file") if stat.get(name, "").isdigit()]
    return sum(map(int, known))


def data_caches(root: Path = ROOT) -> tuple[Cache, ...]:
    """Data and unified caches of the first processor, from L1 down, empty where the kernel lists none."""
    caches = []
    for directory in sorted((root / "sys/devices/system/cpu/cpu0/cache").glob("index[0-9]*")):
        size = re.fullmatch(r"(\d+)([KMG]?)", read_text(directory / "size"))
        level = read_text(directory / "level")
        if size and level.isdigit() and read_text(directory / "type") in ("Data", "Unified"):
            shared = len(list(processor_list(read_text(directory / "shared_cpu_list")))) or 1
            caches.append(Cache(int(level), int(size[1]) * _UNITS.get(size[2], 1), shared))
    return tuple(sorted(caches, key=lambda cache: cache.level))


def processor_list(text: str) -> Iterator[int]:
    """The numbers in the kernel's list notation, such as `0-3,8`."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if first.isdigit() and (last or first).isdigit():
            yield from range(int(first), int(last or first) + 1)


def _cpuinfo(root: Path) -> dict[str, str]:
    """Fields of the first processor that /proc/cpuinfo lists."""
    fields: dict[str, str] = {}
    for line in read_text(root / "proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())
    return fields


def _control_groups(root: Path, controller: str) -> list[Path]:
    """Directories of the control groups that hold this process, innermost first, for version 2 and version 1."""
    base = root / "sys/fs/cgroup"
    directories: list[Path] = []
    for line in read_text(root / "proc/self/cgroup").splitlines():
        _, names, path = [*line.split(":", 2), "", ""][:3]
        if names == "":
            mount = base
        elif controller in names.split(","):
            mount = next((m for m in (base / controller, base / names) if m.is_dir()), base / controller)
        else:
            continue
        # In a container the path may name a group outside what is mounted; then the mount itself is the group.
        group = mount / path.lstrip("/")
        while group != mount and mount in group.parents:
            directories.append(group)
            group = group.parent
        directories.append(mount)
    return directories
