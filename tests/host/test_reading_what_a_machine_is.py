"""Processor, memory, tools and counters are read rightly, of this machine and of others recorded as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from apps.kernels.host import counters, processor
from apps.kernels.host.devices import read_listing
from apps.kernels.machine import Cache


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def laptop(tmp_path: Path) -> Path:
    cache = "sys/devices/system/cpu/cpu0/cache"
    files = {
        "proc/cpuinfo": "processor\t: 0\nmodel name\t: Some  CPU @ 2.8GHz\nflags\t\t: fpu sse2 avx avx2 fma\n\n",
        "proc/meminfo": "MemTotal:       16384000 kB\nMemFree: 1 kB\n",
    }
    listing = [
        ("1", "Data", "48K", "0,4"),
        ("1", "Instruction", "32K", "0,4"),
        ("2", "Unified", "1280K", "0,4"),
        ("3", "Unified", "12M", "0-7"),
    ]
    for index, (level, kind, size, shared) in enumerate(listing):
        place = f"{cache}/index{index}"
        files |= {f"{place}/level": level, f"{place}/type": kind}
        files |= {f"{place}/size": size, f"{place}/shared_cpu_list": shared}
    return write(tmp_path, files)


def test_caches_are_data_caches_with_the_processors_that_share_them(laptop: Path) -> None:
    assert processor.data_caches(laptop) == (Cache(1, 48 << 10, 2), Cache(2, 1280 << 10, 2), Cache(3, 12 << 20, 8))


def test_model_and_vector_width_come_from_cpuinfo(laptop: Path) -> None:
    assert processor.cpu_model(laptop) == "Some CPU @ 2.8GHz"
    assert processor.vector_bits(laptop) == 256


def test_available_memory_is_what_the_tightest_control_group_leaves(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/pod"
    files = {
        "proc/meminfo": "MemTotal: 268435456 kB\nMemAvailable: 201326592 kB\n",
        "proc/self/cgroup": "0::/pod\n",
        f"{group}/memory.max": "8589934592",
        f"{group}/memory.current": "3221225472",
        f"{group}/memory.stat": "anon 1\nfile 2147483648\ninactive_file 1073741824\nactive_file 0\n",
    }
    assert processor.available_memory(write(tmp_path, {"proc/meminfo": files["proc/meminfo"]})) == 192 << 30
    assert processor.available_memory(write(tmp_path, files)) == (8 - 3 + 1) << 30


def test_an_arm_processor_has_a_name_and_vectors(tmp_path: Path) -> None:
    text = "processor : 0\nFeatures : fp asimd\nCPU implementer : 0x41\nCPU part : 0xd0c\n"
    root = write(tmp_path, {"proc/cpuinfo": text})
    assert "part 0xd0c" in processor.cpu_model(root)
    assert processor.vector_bits(root) == 128


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "150000 100000"}, 1.5),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/cpu.max": "50000 100000"}, 0.5),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000"}, None),
        # version 1, in a container: the path names a group that is not mounted inside
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/docker/abc\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
            },
            3.0,
        ),
        ({"proc/self/cgroup": "4:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1"}, None),
    ],
)
def test_a_control_groups_quota_is_respected(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    root = write(tmp_path, files)
    assert processor.cpu_quota(root) == quota
    if quota is not None and quota < 1:
        assert processor.usable_cores(root) == 1


def test_memory_is_what_the_control_group_leaves(laptop: Path) -> None:
    assert processor.usable_memory(laptop) == 16384000 << 10
    write(laptop, {"proc/self/cgroup": "0::/box\n", "sys/fs/cgroup/box/memory.max": str(2 << 30)})
    assert processor.usable_memory(laptop) == 2 << 30


def test_affinity_counts_not_the_machines_processors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {1, 5, 9})
    assert processor.usable_cores(tmp_path) == 3


def test_counters_are_absent_with_a_reason(tmp_path: Path) -> None:
    assert not counters.has_pmu(tmp_path)
    unsupported = counters.judge_perf_answer(0, "<not supported>,,cycles:u,0,100.00,,\n", tmp_path)
    assert not unsupported.available
    assert "virtual machine" in unsupported.detail
    refused = counters.judge_perf_answer(
        255, "Access to performance monitoring ...", write(tmp_path, {"proc/sys/kernel/perf_event_paranoid": "4"})
    )
    assert not refused.available
    assert "perf_event_paranoid is 4" in refused.detail


def test_counters_of_a_hybrid_processor_count(tmp_path: Path) -> None:
    (tmp_path / "sys/bus/event_source/devices/cpu_core").mkdir(parents=True)
    assert counters.has_pmu(tmp_path)
    assert counters.judge_perf_answer(0, "718634,,cycles:u,446083,100.00,,\n", tmp_path).available


def test_gpus_are_listed_without_languages() -> None:
    listed = read_listing("0, NVIDIA H200, 143771\n1, NVIDIA H200, [N/A]\nNo devices were found\n")
    assert [(d.name, d.model, d.memory_bytes >> 20) for d in listed] == [
        ("cuda:0", "NVIDIA H200", 143771),
        ("cuda:1", "NVIDIA H200", 0),
    ]
    assert all(d.languages == () for d in listed)
