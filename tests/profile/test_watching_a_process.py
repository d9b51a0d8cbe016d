"""Samples, usage and remarks of a running kernel; what happens when a way is closed, or the kernel dies."""

from __future__ import annotations

import mmap
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from apps.kernels.jail import freeze
from apps.kernels.machine import HostReport
from apps.kernels.profile import sampling
from apps.kernels.profile.attribution import attribute, read_mappings
from apps.kernels.profile.candidate import profile_candidate
from apps.kernels.profile.compiler_log import read_clang, read_gcc
from apps.kernels.profile.dispatched import Dispatched
from apps.kernels.profile.remarks import NoRemarks, remark_command, vectorisation_remarks
from apps.kernels.profile.runner import BuiltLibrary, RunnerGone
from apps.kernels.profile.usage import read_usage
from tests.profile.conftest import KernelProcess, problem

BUSY = """
static float sink; extern "C" void setup() {}
extern "C" __attribute__((noinline)) void spin() {
  float a = sink; for (int i = 0; i < 3000000; i++) { a = a * 0.5f + 1.0f; asm volatile("" : "+x"(a)); } sink = a;
}
extern "C" void call() { spin(); }
"""

# Each call starts a thread that lives for a small part of a millisecond.
BRIEF = """
#include <thread>
static float sink; extern "C" void setup() {}
extern "C" void call() {
  std::thread([] {
    float a = sink;
    for (int i = 0; i < 60000; i++) { a = a * 0.5f + 1.0f; asm volatile("" : "+x"(a)); }
    sink = a;
  }).join();
}
"""
Build = Callable[..., BuiltLibrary]
Start = Callable[..., KernelProcess]


@pytest.fixture
def busy(build: Build, start: Start) -> KernelProcess:
    return start(build(BUSY))


@pytest.mark.parametrize("way", ["clock events", "stopping"])
def test_both_ways_of_sampling_find_the_loop(busy: KernelProcess, way: str) -> None:
    open_way = {"clock events": sampling.sampled_by_clock, "stopping": sampling.sampled_by_stopping}[way]
    try:
        with open_way(busy.pid) as counters:
            busy.call(60)
    except sampling.NoSampling as closed:
        pytest.skip(f"closed here: {closed}")
    found = attribute(counters.addresses, read_mappings(busy.pid), busy.libraries, busy.pid)
    assert found.total >= 20
    assert found.functions.most_common(1)[0][0] == ("kernel.so", "spin")
    assert found.share_of_libraries() > 0.6
    assert busy.call(1) > 0  # it goes on unharmed


def sample(address: int, thread: int) -> bytes:
    return struct.pack("=IHHQII", 9, 2, 24, address, 1, thread)


def test_a_buffer_that_begins_again_where_it_ends_is_read_in_order() -> None:
    ring = bytearray(mmap.PAGESIZE + 96)
    data = sample(7, 70) + sample(8, 80) + sample(9, 90) + sample(10, 100)
    struct.pack_into("=QQQQ", ring, 1024, 72, 0, mmap.PAGESIZE, 96)
    ring[mmap.PAGESIZE :] = data
    assert list(sampling.drain_ring(ring)) == [(7, 70), (8, 80), (9, 90)]
    assert list(sampling.drain_ring(ring)) == []
    struct.pack_into("=Q", ring, 1024, 72 + 40)  # a lost record of 8 bytes, a sample over the end
    ring[mmap.PAGESIZE + 72 : mmap.PAGESIZE + 80] = struct.pack("=IHH", 2, 0, 8)
    over = sample(11, 110)
    ring[mmap.PAGESIZE + 80 :], ring[mmap.PAGESIZE : mmap.PAGESIZE + 8] = over[:16], over[16:]
    assert list(sampling.drain_ring(ring)) == [(11, 110)]


def test_threads_that_live_too_short_to_be_sampled_are_missed(build: Build, start: Start) -> None:
    process = start(build(BRIEF))
    try:
        before = freeze.processor_time(process.pid)
        with sampling.sampled_by_clock(process.pid) as counters:
            process.call(400)
        used = freeze.processor_time(process.pid).since(before)
    except sampling.NoSampling as closed:
        pytest.skip(f"closed here: {closed}")
    assert counters.seconds_missed(used) > 0.3 * used.all


def test_of_threads_that_go_on_nothing_is_missed(busy: KernelProcess) -> None:
    try:
        before = freeze.processor_time(busy.pid)
        with sampling.sampled_by_clock(busy.pid) as counters:
            busy.call(60)
        used = freeze.processor_time(busy.pid).since(before)
    except sampling.NoSampling as closed:
        pytest.skip(f"closed here: {closed}")
    assert used.all > 0.1
    assert abs(counters.seconds_missed(used)) < 0.1 * used.all


def test_a_thread_that_dies_is_not_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [[(5, "R"), (6, "Z")], [(5, "T"), (6, "Z")], [(5, "T")]]
    monkeypatch.setattr(freeze.os, "kill", lambda *_: None)
    monkeypatch.setattr(freeze, "_states", lambda _pid: looks.pop(0))
    monkeypatch.setattr(freeze, "_state", lambda *_: "T")
    monkeypatch.setattr(freeze, "_are_off_the_processors", lambda _pid: True)
    freeze.freeze(5)
    assert looks == []
    monkeypatch.setattr(freeze, "_states", lambda _pid: [(5, "Z"), (6, "T")])
    with pytest.raises(freeze.NotFrozen):
        freeze.freeze(5)


def test_a_process_that_stands_still_is_left_standing(busy: KernelProcess) -> None:
    freeze.freeze(busy.pid)
    had = freeze.turns(busy.pid)
    assert freeze.glance(busy.pid) == {}
    assert set(freeze.thread_states(busy.pid)) == {"T"}
    assert freeze.turns(busy.pid) == had
    freeze.thaw(busy.pid)
    assert busy.call(1) > 0


def test_a_process_that_is_gone_can_not_be_sampled() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with pytest.raises(sampling.NoSampling, match="gone"), sampling.sampled(process.pid):
        pass
    with pytest.raises(ProcessLookupError):
        read_usage(process.pid)


def test_a_closed_way_says_why(monkeypatch: pytest.MonkeyPatch, busy: KernelProcess, host: HostReport) -> None:
    def closed(pid: int) -> object:
        raise sampling.NoSampling("perf_event_open: Operation not permitted")

    monkeypatch.setattr(sampling, "sampled_by_clock", closed)
    monkeypatch.setattr(sampling, "sampled_by_stopping", closed)
    profile = profile_candidate(problem(64, 64, 1), busy, host, seconds=0.2)
    assert any("not permitted" in missing.why for missing in profile.unavailable if missing.name == "samples")
    assert profile.tier == "software"
    # without samples loops are ranked by what they are
    assert profile.hot_loops
    assert profile.hot_loops[0].share is None


def test_a_kernel_that_dies_leaves_what_was_known(busy: KernelProcess, host: HostReport) -> None:
    busy.close()
    profile = profile_candidate(problem(64, 64, 1), busy, host, candidate_us=100.0)
    assert profile.tier == "none"
    assert profile.bottleneck is None
    assert profile.metric("call_us").value == 100.0  # type: ignore[union-attr]
    assert profile.hot_loops
    assert any("ended" in missing.why for missing in profile.unavailable)


def test_usage_counts_threads_and_faults_of_the_other_process(busy: KernelProcess) -> None:
    before = read_usage(busy.pid)
    busy.call(40)
    after = read_usage(busy.pid)
    spent = sum(after.threads.values()) - sum(before.threads.values())
    assert spent > 0.02
    assert after.user > before.user
    assert after.minor_faults >= before.minor_faults


def test_flags_that_load_or_write_are_not_passed_on() -> None:
    hostile = [
        "g++", "-O3", "-march=native", "-fopenmp", "-fplugin=/tmp/evil.so", "-wrapper", "/tmp/evil", "-B/tmp", "@/tmp/file",
        "-fdump-tree-all=/tmp/x", "-Wl,-z,now", "-DN=3", "-o", "/tmp/k.so", "/tmp/k.cpp", "-ffast-math", "-specs=/tmp/s",
        "-fprofile-use=/tmp/p", "-std=c++17", "-include", "/etc/shadow", "-fno-exceptions", "-shared",
    ]  # fmt: skip
    command, clang = remark_command(hostile, "kernel.cpp")
    assert not clang
    kept = {"-O3", "-march=native", "-fopenmp", "-DN=3", "-ffast-math", "-std=c++17", "-fno-exceptions"}
    added = {"-fdump-tree-vect-details=stderr", "-x", "c++", "-S", "-o", "/dev/null", "kernel.cpp"}
    assert set(command[1:]) == kept | added
    strange, _ = remark_command(["/tmp/not-a-compiler", "-O2"], "kernel.cpp")
    assert strange[0] != "/tmp/not-a-compiler"


def test_a_source_that_reads_other_files_tells_nothing_of_them(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2\n")
    library = BuiltLibrary(tmp_path / "k.so", ("g++", "-O2"), f'#include "{secret}"\n')
    with pytest.raises(NoRemarks) as refused:
        vectorisation_remarks(library)
    assert "hunter2" not in str(refused.value)


def test_how_it_was_built_is_needed(tmp_path: Path) -> None:
    with pytest.raises(NoRemarks, match="not known"):
        vectorisation_remarks(BuiltLibrary(tmp_path / "k.so"))
    with pytest.raises(NoRemarks, match="Torch's headers"):
        vectorisation_remarks(BuiltLibrary(tmp_path / "k.so", ("g++",), "#include <torch/extension.h>"))


def test_gccs_reason_is_that_of_the_widest_vectors() -> None:
    log = """kernel.cpp:5:44: missed:   function is not vectorizable.
/usr/include/c++/12/cmath:502:27: missed:   not vectorized: relevant stmt not supported: _26 = __builtin_tanhf (_24);
kernel.cpp:5:44: note:  ***** Analysis  failed with vector mode V16SF
kernel.cpp:5:44: missed:   not vectorized: no vectype for stmt: _24 = *_23;
kernel.cpp:5:44: note:  ***** Analysis  failed with vector mode V4QI
kernel.cpp:5:44: missed: couldn't vectorize loop
/usr/include/other.h:9:1: missed: couldn't vectorize loop
kernel.cpp:9:10: optimized: loop vectorized using 64 byte vectors
"""
    assert [str(remark) for remark in read_gcc(log, "kernel.cpp")] == [
        "line 5: missed: not vectorised: calls tanhf, which has no vector form here",
        "line 9: loop vectorized using 64 byte vectors",
    ]


def test_clangs_remarks_are_read() -> None:
    log = """./kernel.cpp:7:3: remark: vectorized loop (vectorization width: 16, interleaved count: 4) [-Rpass=loop-vectorize]
./kernel.cpp:12:3: remark: loop not vectorized: call instruction cannot be vectorized [-Rpass-analysis=loop-vectorize]
./kernel.cpp:12:3: remark: loop not vectorized [-Rpass-missed=loop-vectorize]
/usr/include/x.h:1:1: remark: vectorized loop (vectorization width: 4) [-Rpass=loop-vectorize]
"""
    found = read_clang(log, "kernel.cpp")
    assert [(remark.line, remark.missed) for remark in found] == [(7, False), (12, True)]
    assert found[1].text == "not vectorised: call instruction cannot be vectorized"


def test_operations_that_move_nothing_do_not_count() -> None:
    seen = {"aten::mul.Tensor": 2, "aten.view.default": 5, "aten::empty.memory_format": 3, "aten._softmax.default": 1}
    assert Dispatched(seen).operations == 3


def test_a_runner_that_is_gone_says_so(busy: KernelProcess) -> None:
    busy.close()
    with pytest.raises(RunnerGone):
        busy.call(1)
