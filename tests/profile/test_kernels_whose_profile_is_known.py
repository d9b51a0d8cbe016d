"""Copy, triad, multiply-add, reduction: bytes, FLOPs, instruction mix and vector width are what the source says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.kernels.evaluation import Profile
from apps.kernels.machine import HostReport
from apps.kernels.profile.bottleneck import Cause
from apps.kernels.profile.dispatched import Dispatched
from tests.profile.conftest import problem

N = 12 << 20  # 48 MiB an array: beyond the last cache of most machines

COPY = f"""
static float *x, *y; const int64_t n = {N};
extern "C" void setup() {{ x = make(n, 1); y = make(n, 0); }}
extern "C" void call() {{
  float *__restrict to = y; const float *__restrict from = x;
  #pragma omp parallel for simd
  for (int64_t i = 0; i < n; i++) to[i] = from[i] * 1.5f;
}}
"""
TRIAD = f"""
static float *a, *b, *c; const int64_t n = {N};
extern "C" void setup() {{ a = make(n, 1); b = make(n, 2); c = make(n, 0); }}
extern "C" void call() {{
  float *__restrict to = c; const float *__restrict p = a, *__restrict q = b;
  #pragma omp parallel for simd
  for (int64_t i = 0; i < n; i++) to[i] = p[i] + 1.5f * q[i];
}}
"""
STREAMED = f"""
#include <immintrin.h>
static float *x, *y; const int64_t n = {N};
extern "C" void setup() {{ x = make(n, 1); y = make(n, 0); }}
extern "C" void call() {{
  #pragma omp parallel for
  for (int64_t i = 0; i < n; i += 4) _mm_stream_ps(y + i, _mm_load_ps(x + i));
}}
"""
# Sixteen independent chains of vectors in registers: nothing but multiply-adds.
MULTIPLY_ADD = """
typedef float V __attribute__((vector_size(32)));
static float sink[4096]; const int64_t rounds = 400000;
extern "C" void setup() {}
extern "C" void call() {
  #pragma omp parallel for schedule(static, 1)
  for (int t = 0; t < 16; t++) {
    V f = V{} + 0.999f, s = V{} + 0.001f * t;
    V a = f, b = f + 1, c = f + 2, d = f + 3, e = f + 4, g = f + 5, h = f + 6, k = f + 7, l = f + 8, m = f + 9;
    for (int64_t i = 0; i < rounds; i++) {
      a = a * f + s; b = b * f + s; c = c * f + s; d = d * f + s; e = e * f + s;
      g = g * f + s; h = h * f + s; k = k * f + s; l = l * f + s; m = m * f + s;
    }
    V sum = a + b + c + d + e + g + h + k + l + m;
    memcpy(sink + 64 * t, &sum, sizeof sum);
  }
}
"""
# How much of a roof is reached depends on what else runs; more than this, and the ceilings' own scatter, can't be.
BEYOND_THE_ROOF = 1.4
Profiled = Callable[..., Profile]


def value(profile: Profile, name: str) -> float:
    found = profile.metric(name)
    assert found is not None, f"{name} is missing; unavailable: {profile.unavailable}"
    return found.value


def test_copy_moves_its_bytes_with_whole_vectors(profiled: Profiled, host: HostReport) -> None:
    profile = profiled(COPY, problem(4 * N, 4 * N, N))
    assert value(profile, "compulsory_bytes") == 8 * N
    assert value(profile, "flops") == N
    assert value(profile, "intensity") == pytest.approx(1 / 8)
    assert value(profile, "hot_loop_vector_bits") == host.vector_bits
    assert value(profile, "hot_loop_loads") == value(profile, "hot_loop_stores") >= 1
    assert (
        value(profile, "hot_loop_fma") == value(profile, "hot_loop_calls") == value(profile, "hot_loop_nt_stores") == 0
    )
    assert 0 < value(profile, "share_of_memory_roof") < BEYOND_THE_ROOF
    assert profile.roofline is not None
    assert profile.roofline.working_set_bytes > 32 << 20
    assert profile.bottleneck is not None
    assert profile.bottleneck.name in (Cause.AT_THE_ROOF, Cause.WRITE_ALLOCATE, Cause.TRAFFIC, Cause.NOTHING_FOUND)
    rate = value(profile, "compulsory_bytes") / value(profile, "call_us") / 1e3
    assert value(profile, "achieved_bandwidth") == pytest.approx(rate, rel=1e-6)


def test_triad_reads_twice_what_it_writes(profiled: Profiled, host: HostReport) -> None:
    profile = profiled(TRIAD, problem(8 * N, 4 * N, 2 * N))
    assert (value(profile, "read_bytes"), value(profile, "written_bytes")) == (8 * N, 4 * N)
    assert value(profile, "intensity") == pytest.approx(1 / 6)
    assert value(profile, "hot_loop_loads") == 2 * value(profile, "hot_loop_stores")
    assert value(profile, "hot_loop_fma") == value(profile, "hot_loop_stores")
    assert profile.hot_loops[0].symbol.startswith("call")
    assert any("vectorized" in remark for remark in profile.remarks)
    assert value(profile, "loops_not_vectorised") == 0


def test_non_temporal_stores_are_seen(profiled: Profiled) -> None:
    profile = profiled(STREAMED, problem(4 * N, 4 * N, 0))
    assert value(profile, "hot_loop_nt_stores") >= 1
    assert value(profile, "hot_loop_vector_bits") == 128
    assert profile.bottleneck is not None
    assert profile.bottleneck.name != Cause.WRITE_ALLOCATE


def test_multiply_adds_reach_the_peak_of_their_width(profiled: Profiled, host: HostReport) -> None:
    flops = 16 * 400000 * 10 * 2 * 8
    profile = profiled(MULTIPLY_ADD, problem(4, 4096 * 4, flops))
    assert value(profile, "flops") == flops
    assert profile.hot_loops[0].mix["fma"] == 10
    assert profile.hot_loops[0].mix["loads"] == profile.hot_loops[0].mix["stores"] == 0
    assert value(profile, "hot_loop_vector_bits") == 256
    assert value(profile, "latency_chain_ratio") < 1.5
    assert 0 < value(profile, "share_of_arithmetic_peak") < BEYOND_THE_ROOF
    assert value(profile, "intensity") > value(profile, "ridge")
    assert profile.bottleneck is not None
    assert profile.bottleneck.name in (Cause.AT_THE_PEAK, Cause.NARROW, Cause.IMBALANCE, Cause.NOTHING_FOUND)


def test_the_samples_lie_in_the_kernel_and_its_loop(profiled: Profiled) -> None:
    profile = profiled(MULTIPLY_ADD, problem(4, 4096 * 4, 1))
    if any(missing.name == "samples" for missing in profile.unavailable):
        pytest.skip("samples can't be taken here")
    # threads that are done wait busily for those that a busy machine holds up, so the kernel's share is not nearly all
    assert value(profile, "own_code_share") > 0.3
    assert profile.symbols[0][0].startswith(("call", "? (libgomp"))
    assert profile.hot_loops[0].share is not None
    assert profile.hot_loops[0].share == pytest.approx(value(profile, "own_code_share"), rel=0.1)


def test_each_metric_has_a_unit_a_source_and_a_line_in_the_docs(profiled: Profiled) -> None:
    from pathlib import Path

    from apps.kernels.profile.names import UNITS

    profile = profiled(
        COPY, problem(4 * N, 4 * N, N), candidate_us=20000.0, window_us=100.0, dispatched=Dispatched({"aten::mul": 1})
    )
    assert all(m.unit and m.source for m in profile.metrics)
    assert len({m.name for m in profile.metrics}) == len(profile.metrics)
    assert value(profile, "call_overhead_share") == pytest.approx(0.005)
    page = (Path(__file__).parents[2] / "docs/profiling.md").read_text()
    assert [name for name in UNITS if f"`{name}`" not in page] == []
