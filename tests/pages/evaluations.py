"""Evaluations as a host would report them: consistent figures, so that pages can be read with a sceptic's eye."""

from __future__ import annotations

from apps.kernels.evaluation import (
    Bottleneck,
    Build,
    Correctness,
    Evaluation,
    HotLoop,
    Outcome,
    Policy,
    Profile,
    Robustness,
    Roofline,
    RooflinePoint,
    Setup,
    SpeedUp,
    Tier,
    Time,
    Timing,
    Trial,
    Unavailable,
    Verdict,
)
from apps.kernels.facts import Constant, ProblemFacts, Quirk, TensorFact
from apps.kernels.machine import Bandwidth, Cache, Ceilings, DeviceReport, HostReport, Isolation
from apps.kernels.profile.names import metric

ELEMENTS = 4096 * 768
BYTES = 2 * 4 * ELEMENTS
REFERENCE_MS = 1.95
COMPILED_MS = 0.682
PEAK = 236.0
ROOF = 65.0
SHAPES = ((4096, 768), (4096, 768), (4096, 768), (4095, 767))


def time(median: float, spread: float = 0.02) -> Time:
    return Time(median, (median * (1 - spread), median * (1 + spread)))


def trials(failing: int | None = None) -> tuple[Trial, ...]:
    kinds = (
        "normal",
        "uniform",
        "large",
        "small",
        "ties",
        "odd size",
        "subnormal",
        "sparse",
        "cancelling",
        "again",
        "views",
        "last",
    )
    return tuple(
        Trial(
            name=kind,
            seed=f"{7919 * (i + 1):08x}",
            shape=SHAPES[i % 4],
            dtype="float32",
            passed=i != failing,
            error=6.0e-8 * (1 + i % 3) if i != failing else 1.0,
            tolerance=1.2e-6,
            detail="" if i != failing else "the last 17 elements were never written (poison read back)",
        )
        for i, kind in enumerate(kinds)
    )


def profile(candidate_ms: float, vector_bits: int, counters: bool = False) -> Profile:
    achieved = BYTES / candidate_ms / 1e6
    eager = BYTES / REFERENCE_MS / 1e6
    flops = 3 * ELEMENTS / 1e6
    return Profile(
        tier="pmu" if counters else "software",
        metrics=(
            metric("call_us", candidate_ms * 1e3, "timing"),
            metric("achieved_bandwidth", achieved, "compulsory bytes / time"),
            metric("share_of_memory_roof", achieved / ROOF, "ceilings"),
            metric("achieved_arithmetic", flops / candidate_ms, "FLOPs as written / time"),
            metric("compulsory_bytes", BYTES, "problem"),
            metric("hot_loop_vector_bits", vector_bits, "disassembly"),
            metric("scaling", 1.38, "profiling run"),
            metric("minor_faults_per_call", 3, "/proc stat"),
            metric("system_time_share", 0.012, "/proc stat"),
        ),
        roofline=Roofline(
            peak_gflops=PEAK,
            bandwidth_gbytes_per_s=ROOF,
            mix="copy_nt",
            working_set_bytes=BYTES,
            points=(
                RooflinePoint("candidate", 0.375, flops / candidate_ms, achieved, achieved / ROOF),
                RooflinePoint("eager", 0.375, flops / REFERENCE_MS, eager, eager / ROOF),
            ),
        ),
        bottleneck=Bottleneck(
            "memory bandwidth",
            "share_of_memory_roof",
            achieved / ROOF,
            0.8,
            "The loop waits for memory, not for arithmetic.",
        ),
        hot_loops=(
            HotLoop(
                "softsign._omp_fn.0",
                0.93,
                {"vector load": 1, "vector store": 1, "vector arithmetic": 3, "scalar": 2, "branch": 1},
                "  vmovups (%rsi,%rax), %zmm0\n  vandps %zmm2, %zmm0, %zmm1\n  vaddps %zmm3, %zmm1, %zmm1\n"
                "  vdivps %zmm1, %zmm0, %zmm0\n  vmovntps %zmm0, (%rdi,%rax)\n  add $64, %rax\n  cmp %rcx, %rax\n  jne -38",
                10.0,
            ),
        ),
        symbols=(
            ("softsign._omp_fn.0", 0.93),
            ("gomp_team_barrier_wait_end", 0.04),
            ("_PyEval_EvalFrameDefault", 0.01),
        ),
        remarks=(
            "softsign.cpp:9:3: optimized: loop vectorized using 64 byte vectors",
            "softsign.cpp:17:5: missed: couldn't vectorize loop: tail of fewer than 16 elements",
        ),
        unavailable=()
        if counters
        else (
            Unavailable("hardware counters", "this machine has no PMU (/sys/bus/event_source/devices/cpu is missing)"),
        ),
    )


def correct(
    candidate_ms: float,
    tier: Tier = Tier.QUICK,
    vector_bits: int = 512,
    with_profile: bool = True,
    counters: bool = False,
) -> Evaluation:
    ratio = REFERENCE_MS / candidate_ms
    full = tier is Tier.FULL
    return Evaluation(
        verdict=Verdict.CORRECT,
        policy=Policy.KERNEL,
        tier=tier,
        setup=Setup(0.004, 0),
        build=Build(0.61, "g++ -x c++ - -shared -fPIC -O3 -march=native -fopenmp\n(no warnings)"),
        correctness=Correctness(12, 12, 1.8e-7, 1.2e-6, trials()),
        robustness=(
            Robustness("not a number", True),
            Robustness("strides", False, "transposed storage: wrong: 6144 of 6144 elements are off · holds: expanded"),
            Robustness("shapes", False, "no constant of the module sizes the inputs", tried=False),
        ),
        timing=Timing(
            reference=time(REFERENCE_MS),
            compiled_reference=time(COMPILED_MS) if full else None,
            candidate=time(candidate_ms),
            speedup=SpeedUp(
                ratio,
                (ratio * 0.976, ratio * 1.024),
                (ratio * 0.95, ratio * 1.05) if full else None,
                0.999 if full else None,
                0.012 if full else None,
                1.003 if full else None,
            ),
            speedup_over_compiled=SpeedUp(
                COMPILED_MS / candidate_ms, (COMPILED_MS / candidate_ms * 0.97, COMPILED_MS / candidate_ms * 1.03)
            )
            if full
            else None,
            outcome=(Outcome.FASTER if ratio > 1.05 else Outcome.WITHIN_NOISE) if full else None,
            window_us=94.0,
            notes=("100 pairs in 8 pairs of processes",) if full else ("30 pairs, settled at the second look",),
        ),
        profile=profile(candidate_ms, vector_bits, counters) if with_profile else Profile(),
        isolation={"level": "full", "namespaces": True, "seccomp": True, "landlock": True},
        environment={
            "cpu": "AMD EPYC 9R14",
            "threads": 2,
            "torch": "2.13.0+cpu",
            "compiler": "g++ 12.2.0",
            "OMP_NUM_THREADS": "2",
            "allocator": {"MALLOC_MMAP_MAX_": "0"},
        },
        seconds=38.2 if full else 3.1,
        split={"build": 0.61, "check": 0.9, "time": 1.2, "profile": 0.4},
    )


def wrong() -> Evaluation:
    return Evaluation(
        verdict=Verdict.INCORRECT,
        policy=Policy.KERNEL,
        tier=Tier.QUICK,
        detail="Trial “odd size” (4095 × 767): the last 17 elements were never written.",
        build=Build(
            0.66, "softsign.cpp:11:20: warning: unused variable ‘<script>alert(1)</script>’ [-Wunused-variable]"
        ),
        correctness=Correctness(12, 11, 1.0, 1.2e-6, trials(failing=5)),
        seconds=1.4,
    )


def build_failed() -> Evaluation:
    return Evaluation(
        verdict=Verdict.BUILD_FAILED,
        policy=Policy.KERNEL,
        tier=Tier.QUICK,
        detail="g++: error: ‘_mm512_stream_ps’ was not declared in this scope; include <immintrin.h>.",
        build=Build(0.4, "softsign.cpp:14:7: error: ‘_mm512_stream_ps’ was not declared in this scope"),
        seconds=0.5,
    )


def facts(refusal: str | None = None) -> ProblemFacts:
    tensor = TensorFact("x", "input", "float32", (4096, 768), (768, 1), 4 * ELEMENTS)
    return ProblemFacts(
        constants=(Constant("BATCH", 4096, 6), Constant("FEATURES", 768, 7)),
        inputs=(tensor,),
        outputs=(TensorFact("y", "output", "float32", (4096, 768), (768, 1), 4 * ELEMENTS),),
        flops=3 * ELEMENTS,
        compulsory_bytes=BYTES,
        memory_bytes=6 * 4 * ELEMENTS,
        operators={"aten.abs.default": 1, "aten.add.Tensor": 1, "aten.div.Tensor": 1},
        quirks=(
            Quirk(
                "saturates",
                "for large |x| the output is near ±1: a constant passes some trials, so stronger inputs are drawn",
            ),
        ),
        refusal=refusal,
        docstring="Soft-sign over a large batch: x / (1 + |x|).",
    )


def host_report(counters: bool = False) -> HostReport:
    mixes = {"read": 57.0, "write": 31.0, "copy": 46.0, "copy_nt": 65.0, "triad": 44.0}
    sets = (32 << 10, 1 << 20, 32 << 20, 256 << 20)
    boost = {32 << 10: 6.0, 1 << 20: 3.2, 32 << 20: 1.4, 256 << 20: 1.0}
    return HostReport(
        cpu_model="AMD EPYC 9R14",
        cores=2,
        vector_bits=512,
        memory_bytes=16 << 30,
        caches=(Cache(1, 32 << 10, 1), Cache(2, 1 << 20, 1), Cache(3, 32 << 20, 2)),
        devices=(DeviceReport("cpu", "cpu", "AMD EPYC 9R14", 16 << 30, ("cpp",)),),
        toolchains={"g++": "12.2.0", "clang": "19.1.7", "objdump": "2.40"},
        torch="2.13.0+cpu",
        ceilings=Ceilings(
            peak_gflops={"fp32_1": 118.0, "fp32_all": PEAK, "fp64_all": 118.0},
            bandwidth=tuple(
                Bandwidth(mix, size, 2, rate * boost[size]) for mix, rate in mixes.items() for size in sets
            ),
            parallel_region_us=0.7,
            page_fault_us=2.0,
            seconds=11.0,
        ),
        isolation=(
            Isolation("network", True, "own network namespace"),
            Isolation("file system", True, "landlock and a private mount namespace"),
            Isolation("system calls", True, "seccomp"),
            Isolation("memory limit", False, "no delegated cgroup: RLIMIT_AS instead"),
        ),
        isolation_level="full",
        counters=counters,
        counters_detail="perf stat works"
        if counters
        else "no PMU: /sys/bus/event_source/devices/cpu is missing (a virtual machine without one)",
        noise={"memory-bound 8 MB": 0.004, "compute-bound 1 ms": 0.002},
        environment={"kernel": "6.1.0", "python": "3.11.2"},
    )
