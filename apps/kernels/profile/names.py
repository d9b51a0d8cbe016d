"""Every metric of a profile on a CPU: its name, unit and meaning. Names are stable; docs/profiling.md explains each."""

from __future__ import annotations

from apps.kernels.evaluation import Metric

UNITS = {
    # time
    "call_us": "us",
    "call_us_one_thread": "us",
    "scaling": "x",
    "parallel_efficiency": "share",
    "parallelism": "threads",
    "busiest_thread_share": "share",
    "call_overhead_share": "share",
    # what the problem asks for, and what was reached of it
    "compulsory_bytes": "B",
    "read_bytes": "B",
    "written_bytes": "B",
    "flops": "FLOP",
    "intensity": "FLOP/B",
    "ridge": "FLOP/B",
    "memory_roof": "GB/s",
    "plain_store_roof": "GB/s",
    "arithmetic_peak": "GFLOP/s",
    "achieved_bandwidth": "GB/s",
    "achieved_arithmetic": "GFLOP/s",
    "share_of_memory_roof": "share",
    "share_of_plain_store_roof": "share",
    "share_of_arithmetic_peak": "share",
    "share_of_roof": "share",
    "streaming_gain": "x",
    # what a call costs beside arithmetic
    "minor_faults_per_call": "faults",
    "page_fault_share": "share",
    "system_time_share": "share",
    "involuntary_switches_per_call": "switches",
    "torch_operations_per_call": "operations",
    "torch_bytes_per_call": "B",
    "reference_torch_operations_per_call": "operations",
    "reference_torch_bytes_per_call": "B",
    # where the samples lie
    "own_code_share": "share",
    "math_library_share": "share",
    "kernel_mode_share": "share",
    # the hottest loop
    "hot_loop_share": "share",
    "hot_loop_vector_bits": "bits",
    "hot_loop_instructions": "instructions",
    "hot_loop_fma": "instructions",
    "hot_loop_div_sqrt": "instructions",
    "hot_loop_loads": "instructions",
    "hot_loop_stores": "instructions",
    "hot_loop_nt_stores": "instructions",
    "hot_loop_calls": "instructions",
    "hot_loop_vector_math_calls": "instructions",
    "hot_loop_spills": "instructions",
    "hot_loop_strided_loads": "instructions",
    "hot_loop_indirect_loads": "instructions",
    "hot_loop_recurrence_cycles": "cycles",
    "hot_loop_throughput_cycles": "cycles",
    "hot_loop_predicted_cycles": "cycles",
    "latency_chain_ratio": "x",
    "loops_not_vectorised": "loops",
    # this machine
    "host_vector_bits": "bits",
    "host_cores": "processors",
    # hardware counters
    "cycles": "cycles",
    "instructions": "instructions",
    "ipc": "instructions/cycle",
    "cache_miss_share": "share",
    "cache_misses_per_kilo_instruction": "misses",
    "branch_miss_share": "share",
    "dtlb_load_misses": "misses",
    "topdown_retiring": "share",
    "topdown_bad_speculation": "share",
    "topdown_frontend_bound": "share",
    "topdown_backend_bound": "share",
}


def unit_for(value: float, unit: str) -> str:
    """The unit as it reads after `value`: one of what is counted in words is said in the singular (1 loop, 1 switch)."""
    if value != 1 or not unit.isalpha() or not unit.endswith("s") or len(unit) < 4:
        return unit
    return unit.removesuffix("es") if unit.endswith(("ches", "sses")) else unit.removesuffix("s")


def metric(name: str, value: float, source: str) -> Metric:
    """The metric of that name with its unit; a name that is not in the table is a mistake here."""
    return Metric(name, float(value), UNITS[name], source)
