"""The table of bottlenecks: what fires, in which order, and what a missing metric does."""

from __future__ import annotations

import pytest

from apps.kernels.profile.bottleneck import RULES, Cause, bottleneck, bottlenecks
from apps.kernels.profile.names import UNITS

# A memory-bound kernel with nothing wrong, under half of its roof for no reason that metrics show.
PLAIN = {
    "call_us": 5000.0, "intensity": 0.1, "ridge": 2.0, "share_of_memory_roof": 0.6, "share_of_roof": 0.6,
    "share_of_plain_store_roof": 0.62, "streaming_gain": 1.0, "share_of_arithmetic_peak": 0.01, "parallelism": 2.0,
    "scaling": 1.8, "parallel_efficiency": 0.9, "minor_faults_per_call": 0.0, "page_fault_share": 0.0,
    "system_time_share": 0.0, "torch_operations_per_call": 0.0, "hot_loop_vector_bits": 512.0, "hot_loop_calls": 0.0,
    "hot_loop_vector_math_calls": 0.0, "hot_loop_div_sqrt": 0.0, "hot_loop_indirect_loads": 0.0, "hot_loop_nt_stores": 0.0,
    "hot_loop_strided_loads": 0.0, "latency_chain_ratio": 0.5, "math_library_share": 0.0, "host_cores": 2.0,
    "host_vector_bits": 512.0,
}  # fmt: skip
COMPUTE = {"intensity": 20.0, "share_of_arithmetic_peak": 0.4, "share_of_memory_roof": 0.05, "share_of_roof": 0.4}

CASES = [
    ({}, Cause.NOTHING_FOUND),
    ({"minor_faults_per_call": 9000.0, "page_fault_share": 0.5}, Cause.PAGE_FAULTS),
    ({"minor_faults_per_call": 9000.0, "page_fault_share": 0.01}, Cause.NOTHING_FOUND),
    ({"system_time_share": 0.2}, Cause.SYSTEM_TIME),
    ({"call_overhead_share": 0.7}, Cause.CALL_OVERHEAD),
    ({"torch_operations_per_call": 3.0}, Cause.PASSES),
    ({"torch_operations_per_call": 3.0} | COMPUTE, Cause.NOTHING_FOUND),
    ({"share_of_memory_roof": 0.85}, Cause.AT_THE_ROOF),
    ({"share_of_memory_roof": 0.7, "share_of_plain_store_roof": 0.95, "streaming_gain": 1.35}, Cause.WRITE_ALLOCATE),
    (
        {
            "share_of_memory_roof": 0.7,
            "share_of_plain_store_roof": 0.95,
            "streaming_gain": 1.35,
            "hot_loop_nt_stores": 1.0,
        },
        Cause.NOTHING_FOUND,
    ),
    (COMPUTE | {"share_of_arithmetic_peak": 0.77}, Cause.AT_THE_PEAK),
    ({"hot_loop_calls": 1.0, "hot_loop_vector_bits": 64.0}, Cause.CALLS),
    ({"math_library_share": 0.4}, Cause.CALLS),
    ({"math_library_share": 0.4, "hot_loop_vector_math_calls": 1.0}, Cause.NOTHING_FOUND),
    ({"hot_loop_indirect_loads": 2.0, "hot_loop_vector_bits": 64.0}, Cause.GATHER),
    ({"hot_loop_strided_loads": 1.0, "hot_loop_vector_bits": 64.0, "share_of_memory_roof": 0.1}, Cause.STRIDES),
    ({"hot_loop_strided_loads": 1.0} | COMPUTE, Cause.NOTHING_FOUND),
    ({"latency_chain_ratio": 8.0, "share_of_roof": 0.2, "hot_loop_vector_bits": 64.0}, Cause.LATENCY_CHAIN),
    ({"hot_loop_vector_bits": 64.0}, Cause.SCALAR),
    ({"hot_loop_div_sqrt": 1.0}, Cause.DIVISION),
    ({"parallelism": 1.02}, Cause.ONE_THREAD),
    ({"parallelism": 1.02, "host_cores": 1.0}, Cause.NOTHING_FOUND),
    ({"parallelism": 1.02, "call_us": 20.0}, Cause.NOTHING_FOUND),
    (COMPUTE | {"parallel_efficiency": 0.55}, Cause.IMBALANCE),
    ({"share_of_memory_roof": 0.3}, Cause.TRAFFIC),
    (COMPUTE | {"hot_loop_vector_bits": 256.0}, Cause.NARROW),
]


@pytest.mark.parametrize(("changed", "cause"), CASES)
def test_a_cause_is_named_by_the_metric_that_shows_it(changed: dict[str, float], cause: Cause) -> None:
    found = bottleneck(PLAIN | changed)
    assert found.name == cause
    assert found.explanation
    if cause is not Cause.NOTHING_FOUND:
        assert found.value == (PLAIN | changed)[found.metric]
        assert found.metric in changed


def test_every_cause_is_reached_by_some_case() -> None:
    assert {cause for _, cause in CASES} == set(Cause)


def test_what_is_no_computing_comes_before_what_is_wrong_with_the_loop() -> None:
    ill = PLAIN | {"minor_faults_per_call": 9000.0, "page_fault_share": 0.5, "hot_loop_calls": 1.0, "parallelism": 1.0}
    assert [found.name for found in bottlenecks(ill)] == [Cause.PAGE_FAULTS, Cause.CALLS, Cause.ONE_THREAD]


def test_a_metric_that_was_not_measured_shows_nothing() -> None:
    assert bottleneck({}).name == Cause.NOTHING_FOUND
    without = {name: value for name, value in PLAIN.items() if name != "ridge"}
    assert bottleneck(without | {"share_of_memory_roof": 0.1}).name == Cause.NOTHING_FOUND


def test_rules_speak_of_metrics_that_exist() -> None:
    for rule in RULES:
        for condition in (rule.shown_by, *rule.given):
            assert condition.metric in UNITS
            assert not isinstance(condition.than, str) or condition.than in UNITS
