"""What perf stat writes, on machines with counters, is read into metrics; what it can't count is left out with the reason."""

from __future__ import annotations

import pytest

from apps.kernels.evaluation import Metric
from apps.kernels.profile.pmu import Count, counter_metrics, read_counts

# perf 6 on a desktop processor, seven events over six counters
AMD = """# started on Tue Mar  4 10:11:12 2025

4000000000,,cycles:u,1000123456,71.00,,
6000000000,,instructions:u,1000123456,72.00,1.50,insn per cycle
20000000,,cache-references:u,1000123456,71.00,,
5000000,,cache-misses:u,1000123456,71.00,25.00,of all cache refs
800000000,,branches:u,1000123456,71.00,800.000,M/sec
400000,,branch-misses:u,1000123456,71.00,0.05,of all branches
<not supported>,,dTLB-load-misses:u,0,100.00,,
"""
# A hybrid laptop: two kinds of core, one of which the threads never ran on; top-down slots on the large ones.
HYBRID = """3000000000,,cpu_core/cycles/u,900000000,100.00,,
<not counted>,,cpu_atom/cycles/u,0,0.00,,
9000000000,,cpu_core/instructions/u,900000000,100.00,3.00,insn per cycle
100,,cpu_atom/instructions/,10,1.00,,
18000000000,,cpu_core/slots/u,900000000,100.00,,
9000000000,,cpu_core/topdown-retiring/u,900000000,100.00,50.0,retiring
900000000,,cpu_core/topdown-bad-spec/u,900000000,100.00,5.0,bad_speculation
900000000,,cpu_core/topdown-fe-bound/u,900000000,100.00,5.0,frontend_bound
7200000000,,cpu_core/topdown-be-bound/u,900000000,100.00,40.0,backend_bound
,,,,,12.3,some metric alone
"""


def by_name(metrics: tuple[Metric, ...]) -> dict[str, float]:
    return {m.name: m.value for m in metrics}


def test_counts_become_ratios_and_figures_per_call() -> None:
    counts = read_counts(AMD.splitlines())
    assert Count("dTLB-load-misses", None, "not supported") in counts
    found = by_name(counter_metrics(counts, calls=100))
    assert found == {
        "cycles": 4e7,
        "instructions": 6e7,
        "ipc": 1.5,
        "cache_miss_share": 0.25,
        "branch_miss_share": pytest.approx(0.0005),
        "cache_misses_per_kilo_instruction": pytest.approx(5e6 / 6e9 * 1e3),
    }


def test_a_hybrid_processors_cores_are_one_machine() -> None:
    found = by_name(counter_metrics(read_counts(HYBRID.splitlines()), calls=1))
    assert found["ipc"] == pytest.approx(3.0)
    shares = [found[f"topdown_{name}"] for name in ("retiring", "bad_speculation", "frontend_bound", "backend_bound")]
    assert shares == pytest.approx([0.5, 0.05, 0.05, 0.4])


def test_a_count_that_was_hardly_live_is_not_believed() -> None:
    (count,) = read_counts(["5000,,cycles:u,1000,2.10,,"])
    assert count.value is None
    assert "2%" in count.why


def test_this_virtual_machines_answer_gives_no_metric() -> None:
    counts = read_counts(["<not supported>,,cycles,0,100.00,,", "<not counted>,,instructions,0,0.00,,", ""])
    assert counter_metrics(counts, 10) == ()
    assert [count.why for count in counts] == ["not supported", "not counted"]
