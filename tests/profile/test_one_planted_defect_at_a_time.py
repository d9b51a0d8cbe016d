"""Each kernel has one thing wrong with it, and that is what the profiler names."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from apps.kernels.evaluation import Profile
from apps.kernels.machine import HostReport
from apps.kernels.profile.bottleneck import Cause
from apps.kernels.profile.dispatched import Dispatched
from tests.profile.conftest import problem

Profiled = Callable[..., Profile]
SMALL = 1 << 20  # elements: 4 MiB an array, within the last cache


def elementwise(body: str, pragma: str = "omp parallel for", n: int = SMALL) -> str:
    """A kernel over n elements of x, y and an index array k."""
    return f"""
    static float *x, *y, *divisor; static int64_t *k; const int64_t n = {n};
    extern "C" void setup() {{
      x = make(n, 0.5f); y = make(n, 0); divisor = make(n, 3.0f);
      k = static_cast<int64_t *>(std::malloc(8 * n));
      for (int64_t i = 0; i < n; i++) k[i] = (i * 7919) % n;
    }}
    extern "C" void call() {{
      float *__restrict to = y; const float *__restrict from = x, *__restrict by = divisor; const int64_t *__restrict at = k;
      #pragma {pragma}
      for (int64_t i = 0; i < n; i++) {{ {body} }}
      asm volatile("" : : "g"(to), "g"(from), "g"(by), "g"(at) : "memory");
    }}
    """


ONE_PASS = problem(4 * SMALL, 4 * SMALL, SMALL)

# A branch that leaves the loop's body in two halves, which GCC does not vectorise because of the store between.
SCALAR = elementwise('float v = from[i]; asm volatile("" : "+x"(v)); to[i] = v * v * v + v;')
CALLS = elementwise("to[i] = std::tanh(from[i]);")
# Six for each element: with two, the last cache's roof is as near as the divider's.
SIX_TIMES = " + ".join(f"(from[i] + {k}.0f) / (by[i] + {k + 1}.0f)" for k in range(6))
DIVISION = elementwise(f"to[i] = {SIX_TIMES};", "omp parallel for simd")
GATHER = elementwise("to[i] = from[at[i]];")
HORNER = "v = v * from[i] + 0.25f; v = v * from[i] + 0.5f; v = v * from[i] + 0.75f; v = v * from[i] + 1.0f;"
ONE_THREAD = elementwise(f"float v = 1; {HORNER * 16} to[i] = v;", "omp simd")
CHAIN = """
static float *x, sums[64]; const int64_t n = 1 << 20;
extern "C" void setup() { x = make(n, 0.5f); }
extern "C" void call() {
  #pragma omp parallel for
  for (int t = 0; t < 4; t++) {
    float s = 0;
    for (int64_t i = 0; i < n / 4; i++) s += x[t * (n / 4) + i];
    sums[16 * t] = s;
  }
  asm volatile("" : : "g"(sums) : "memory");
}
"""
STRIDED = """
static float *x, *y; static int64_t rows = 4096, columns = 4096;
extern "C" void setup() { x = make(rows * columns, 1); y = make(columns, 0); asm volatile("" : "+m"(columns)); }
extern "C" void call() {
  #pragma omp parallel for
  for (int64_t j = 0; j < columns; j++) {
    float s = 0;
    for (int64_t i = 0; i < rows; i++) s += x[i * columns + j];
    y[j] = s;
  }
}
"""
# A fresh temporary of 48 MiB for each call, as a chain of library operations would make.
PAGE_FAULTS = """
#include <sys/mman.h>
static float *x, *y; const int64_t n = 12 << 20;
extern "C" void setup() { x = make(n, 1); y = make(n, 0); }
extern "C" void call() {
  float *t = static_cast<float *>(mmap(nullptr, n * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  #pragma omp parallel for simd
  for (int64_t i = 0; i < n; i++) t[i] = x[i] * 2;
  #pragma omp parallel for simd
  for (int64_t i = 0; i < n; i++) y[i] = t[i] + 1;
  munmap(t, n * 4);
}
"""
# All but a thousandth of the work lies in the first of 64 chunks.
SERIAL_PART = f"""
static float *x, *y; const int64_t n = 1 << 20;
static void work(float *__restrict to, const float *__restrict from, int64_t first, int64_t last) {{
  #pragma omp simd
  for (int64_t i = first; i < last; i++) {{ float v = 1; {HORNER * 16} to[i] = v; }}
}}
extern "C" void setup() {{ x = make(n, 1); y = make(n, 0); }}
extern "C" void call() {{
  #pragma omp parallel for schedule(static, 1)
  for (int t = 0; t < 64; t++) work(y, x, t == 0 ? 0 : n - t * 16, t == 0 ? n - 63 * 16 : n - t * 16 + 16);
}}
"""


def causes(profile: Profile) -> tuple[str, str]:
    """The bottleneck's name and metric; what a failing test shows beside them."""
    print(*profile.metrics, profile.symbols, profile.unavailable, sep="\n")
    assert profile.bottleneck is not None
    return profile.bottleneck.name, profile.bottleneck.metric


def test_a_scalar_loop(profiled: Profiled) -> None:
    profile = profiled(SCALAR, ONE_PASS)
    assert causes(profile) == (Cause.SCALAR, "hot_loop_vector_bits")
    assert profile.metric("hot_loop_vector_bits").value == 64  # type: ignore[union-attr]
    assert any("not vectorised" in remark for remark in profile.remarks)


def test_a_library_call_for_each_element(profiled: Profiled) -> None:
    profile = profiled(CALLS, ONE_PASS)
    assert causes(profile)[0] == Cause.CALLS
    assert profile.hot_loops[0].mix["calls"] == 1
    assert any("calls" in remark and "tanh" in remark for remark in profile.remarks)


def test_divisions(profiled: Profiled, host: HostReport) -> None:
    profile = profiled(DIVISION, problem(8 * SMALL, 4 * SMALL, 23 * SMALL))
    assert causes(profile) == (Cause.DIVISION, "hot_loop_div_sqrt")
    assert profile.metric("hot_loop_div_sqrt").value == 6  # type: ignore[union-attr]
    assert profile.metric("hot_loop_vector_bits").value == host.vector_bits  # type: ignore[union-attr]


def test_a_gather(profiled: Profiled) -> None:
    profile = profiled(GATHER, problem(12 * SMALL, 4 * SMALL, 0))
    assert causes(profile) == (Cause.GATHER, "hot_loop_indirect_loads")


def test_a_sum_that_waits_for_itself(profiled: Profiled) -> None:
    profile = profiled(CHAIN, problem(4 * SMALL, 256, SMALL))
    assert causes(profile) == (Cause.LATENCY_CHAIN, "latency_chain_ratio")
    assert profile.bottleneck.value >= 2  # type: ignore[union-attr]


def test_columns_summed_down_a_row_major_matrix(profiled: Profiled) -> None:
    profile = profiled(STRIDED, problem(4 << 24, 4 << 12, 1 << 24))
    assert causes(profile) == (Cause.STRIDES, "hot_loop_strided_loads")


def test_a_fresh_temporary_for_each_call(profiled: Profiled) -> None:
    profile = profiled(PAGE_FAULTS, problem(4 * (12 << 20), 4 * (12 << 20), 2 * (12 << 20)))
    assert causes(profile) == (Cause.PAGE_FAULTS, "minor_faults_per_call")
    faults = profile.metric("minor_faults_per_call").value  # type: ignore[union-attr]
    # one for each fresh page, unless the system gives huge ones
    assert faults <= 12.5 * 1024


def test_one_thread_where_there_are_more(profiled: Profiled, host: HostReport) -> None:
    if host.cores < 2:
        pytest.skip("needs two processors")
    profile = profiled(ONE_THREAD, problem(4 * SMALL, 4 * SMALL, 128 * SMALL))
    assert causes(profile) == (Cause.ONE_THREAD, "parallelism")
    assert profile.metric("parallelism").value == pytest.approx(1.0, abs=0.05)  # type: ignore[union-attr]


def test_work_that_lies_almost_all_in_one_chunk(profiled: Profiled, host: HostReport) -> None:
    if host.cores < 2:
        pytest.skip("needs two processors")
    profile = profiled(SERIAL_PART, problem(4 << 20, 4 << 20, 128 << 20))
    assert causes(profile)[0] in (Cause.IMBALANCE, Cause.ONE_THREAD)


def test_several_torch_operations(profiled: Profiled) -> None:
    source = elementwise("to[i] = from[i] * 2;", "omp parallel for simd", 12 << 20)
    dispatched = Dispatched({"aten::mul.Tensor": 2, "aten::empty.memory_format": 4, "aten::add.Tensor": 1})
    profile = profiled(source, problem(4 * (12 << 20), 4 * (12 << 20), 3 * (12 << 20)), dispatched=dispatched)
    assert causes(profile) == (Cause.PASSES, "torch_operations_per_call")
    assert profile.bottleneck.value == 3  # type: ignore[union-attr]
