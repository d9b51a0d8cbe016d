"""What this host says of itself."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path

from apps.kernels.evaluation import Progress
from apps.kernels.host.ceilings import CeilingsUnavailable, ceilings, kept_ceilings
from apps.kernels.host.counters import hardware_counters
from apps.kernels.host.devices import devices
from apps.kernels.host.noise import noise_of_this_host
from apps.kernels.host.processor import cpu_quota, processor, read_text, usable_memory
from apps.kernels.host.toolchains import host_compiler, toolchains, torch_version
from apps.kernels.jail.isolation import isolation, isolation_level, required_level
from apps.kernels.machine import Ceilings, HostReport, IsolationLevel
from apps.kernels.plain import Plain


def host_report(*, quick: bool = False, observe: Callable[[Progress], None] = lambda progress: None) -> HostReport:
    """All of it. `quick` measures nothing and takes ceilings only where they were kept (under a second).

    Never raises for what is missing: a ceiling that can't be measured is left empty and `environment` says why.
    """
    here, memory = processor(), usable_memory()
    environment = host_environment()
    measured = Ceilings()
    try:
        measured = ceilings(quick=quick, observe=observe)
    except CeilingsUnavailable as problem:
        environment["ceilings_unavailable"] = str(problem)
    if kept := kept_ceilings():
        environment["ceilings_measured"] = kept.measured
    tools, torch, counters = toolchains(), torch_version(), hardware_counters()
    languages = ("cpp",) if torch and host_compiler() and platform.system() == "Linux" else ()
    return HostReport(
        cpu_model=here.model,
        cores=here.cores,
        vector_bits=here.vector_bits,
        memory_bytes=memory,
        caches=here.caches,
        devices=devices(here, memory, languages),
        toolchains=tools,
        torch=torch,
        ceilings=measured,
        isolation=isolation(),
        isolation_level=isolation_level().value,
        isolation_required=_required(environment).value,
        counters=counters.available,
        counters_detail=counters.detail,
        noise=noise_of_this_host(),
        environment=environment,
    )


def _required(environment: dict[str, Plain]) -> IsolationLevel:
    """The level this host asks for; the strictest where its setting can't be read, which `environment` then says."""
    try:
        return required_level()
    except ValueError as wrong:
        environment["isolation_setting"] = str(wrong)
        return IsolationLevel.FULL


def host_environment() -> dict[str, Plain]:
    """What may change a time without changing the machine: kernel, quota, page and frequency settings, load."""
    quota = cpu_quota()
    governor = read_text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    pages = read_text(Path("/sys/kernel/mm/transparent_hugepage/enabled"))
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "logical_processors": os.cpu_count() or 1,
        "cpu_quota": quota,
        "frequency_governor": governor or None,
        "transparent_huge_pages": pages.partition("[")[2].partition("]")[0] or None,
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }
