"""What a host's results depend on, as the host reports it: torch, compilers, driver, operating system's kernel, processor.

Two reports that differ in it may judge the same kernel differently.
"""

from __future__ import annotations

import hashlib
import json

from apps.hosts.models import Device, Host
from apps.kernels.plain import BadPlain
from apps.reviews.models import Circumstances
from apps.runs.models import Measurement

# Tools that judge or build; a newer profiler or disassembler changes no result.
_TOOLS = ("python", "g++", "clang++", "nvcc", "nvidia-smi")
_NAMES = {"nvidia-smi": "driver"}


def environment_of(host: Host, device: Device) -> dict[str, str]:
    """Name and version of everything that a result on the device depends on; empty before the host has reported."""
    try:
        facts = host.facts
    except BadPlain:
        facts = None  # a report of another PRAGMA; the next one can be read
    if facts is None:
        return {}
    found = {"torch": facts.torch or "none", "processor": facts.cpu_model}
    wanted = _TOOLS if device.kind != "cpu" else _TOOLS[:3]
    found |= {_NAMES.get(tool, tool): facts.toolchains[tool] for tool in wanted if tool in facts.toolchains}
    if device.kind != "cpu":
        found["device"] = device.model
    return dict(sorted(found.items()))


def digest(environment: dict[str, str]) -> str:
    """SHA-256 of it."""
    return hashlib.sha256(json.dumps(environment, sort_keys=True).encode()).hexdigest()


def differences(before: dict[str, str], now: dict[str, str]) -> list[str]:
    """What differs, in words: `torch 2.12 → 2.13`."""
    names = sorted({*before, *now})
    return [
        f"{name} {before.get(name, 'none')} → {now.get(name, 'none')}"
        for name in names
        if before.get(name) != now.get(name)
    ]


def keep(measurement: Measurement) -> None:
    """Remember what the host was when the measurement came in."""
    device = measurement.device
    found = environment_of(device.host, device)
    Circumstances.objects.get_or_create(measurement=measurement, defaults={"environment": found})


def at(measurement: Measurement) -> dict[str, str]:
    """What the host was when the measurement came in; what it is now for one that came before that was kept."""
    kept = Circumstances.objects.filter(measurement=measurement).first()
    return kept.environment if kept else environment_of(measurement.device.host, measurement.device)
