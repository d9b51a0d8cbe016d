"""The Conductor sees PyTorch's figures, the best version's and its parent's side by side, by the same arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.agents import profiler
from apps.agents.words import Attempt, History, Writing
from apps.agents.writers import questions, telling
from apps.agents.writers.prompts import Prompts
from apps.kernels.evaluation import Evaluation, Metric, Profile, Time, Timing
from apps.kernels.machine import Bandwidth, Ceilings
from apps.kernels.profile.dispatched import Dispatched
from apps.kernels.profile.roofline import Work, place
from tests.agents.doubles import an_evaluation
from tests.agents_models.world import a_kernel, a_model_assignment

WORK = Work(32 << 20, 16 << 20, 150_000_000, "fp32")
CEILINGS = Ceilings({"fp32_all": 236.0}, (Bandwidth("copy", 1 << 28, 2, 46.0), Bandwidth("copy_nt", 1 << 28, 2, 60.0)))
REFERENCE_MS, MINE_MS = 4.0, 1.5


def measured(milliseconds: float) -> Evaluation:
    """As a judgement of a candidate that takes so long and calls nothing, beside a reference of seven operations."""
    counted = (
        *Dispatched({"aten.mul.Tensor": 0}, 0).metrics(),
        *Dispatched({"aten.mul.Tensor": 4, "aten.add.Tensor": 3}, 1 << 20).metrics("reference_"),
    )
    placed = place(WORK, CEILINGS, 2, milliseconds / 1e3)
    others = (Metric("call_us", 1e3 * milliseconds, "us", "timing"), Metric("ipc", 1.7, "", "perf"))
    evaluation = an_evaluation(f"correct {REFERENCE_MS / milliseconds}")
    timing = replace(
        evaluation.timing,
        reference=Time(REFERENCE_MS, (3.9, 4.1)),
        candidate=Time(milliseconds, (0.9 * milliseconds, 1.1 * milliseconds)),
    )
    return replace(evaluation, timing=timing, profile=Profile("software", (*others, *placed.metrics, *counted)))


def attempt(number: int, milliseconds: float, parent: int | None = None) -> Attempt:
    return Attempt(number, 0, 0, 0, parent, "m", Writing(a_kernel("correct"), "", ""), None, measured(milliseconds))


PARENT, BEST = attempt(1, 2.0), attempt(2, MINE_MS, 1)


def row(table: str, name: str) -> list[str]:
    line = next(line for line in table.splitlines() if line.startswith(f"| {name} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_reference_is_placed_as_a_candidate_of_its_time_would_be() -> None:
    reference = profiler.reference_metrics(BEST.evaluation)
    for expected in place(WORK, CEILINGS, 2, REFERENCE_MS / 1e3).metrics:
        assert reference[expected.name].value == pytest.approx(expected.value), expected.name
    assert reference["time"].value == REFERENCE_MS
    assert reference["call_us"].value == 4000
    assert reference["time_over_reference"].value == 1
    assert reference["torch_operations_per_call"].value == 7
    assert "ipc" not in reference  # not measured of it


def test_the_table_sets_the_three_side_by_side() -> None:
    table = telling.metrics(BEST, PARENT, Prompts("1").metrics(a_model_assignment().host))
    assert table.splitlines()[0] == "| metric | PyTorch | v2 | v1 | meaning | normal |"
    assert table.splitlines()[1] == "|---|---|---|---|---|---|"
    assert row(table, "time")[1:4] == ["4 ms", "1.5 ms", "2 ms"]
    assert row(table, "achieved_bandwidth")[1:4] == ["12.583 GB/s", "33.554 GB/s", "25.166 GB/s"]
    assert row(table, "achieved_arithmetic")[1:4] == ["37.5 GFLOP/s", "100 GFLOP/s", "75 GFLOP/s"]
    assert row(table, "torch_operations_per_call")[1:4] == ["7 operations", "0 operations", "0 operations"]
    assert row(table, "time_over_reference")[1:4] == ["1 ratio", "0.375 ratio", "0.5 ratio"]
    assert row(table, "ipc")[1:4] == ["-", "1.7", "1.7"]
    shares = [float(cell.split()[0]) for cell in row(table, "share_of_roof")[1:4]]
    assert shares[1] / shares[0] == pytest.approx(REFERENCE_MS / MINE_MS, rel=1e-3)
    assert "reference_torch_operations_per_call" not in table  # it has become the column's
    assert len({line.count("|") for line in table.splitlines()}) == 1


def test_the_first_version_has_no_parent_and_an_untimed_reference_no_column() -> None:
    untimed = replace(BEST, evaluation=replace(BEST.evaluation, timing=Timing()))
    assert telling.metrics(BEST, None, {}).splitlines()[0] == "| metric | PyTorch | v2 | meaning | normal |"
    table = telling.metrics(untimed, None, {})
    assert table.splitlines()[0] == "| metric | v2 | meaning | normal |"
    assert row(table, "reference_torch_operations_per_call")[1] == "7 operations"


def test_with_the_profile_off_its_time_is_all_that_is_known_of_it() -> None:
    bare = replace(BEST.evaluation, profile=Profile())
    assert set(profiler.reference_metrics(bare)) == {"time", "time_over_reference"}


def test_shares_without_their_roofs_are_left_out() -> None:
    alone = replace(BEST.evaluation, profile=Profile("software", (Metric("share_of_roof", 0.5, "share", "x"),)))
    assert "share_of_roof" not in profiler.reference_metrics(alone)


def test_the_conductor_is_told_what_the_column_is() -> None:
    history = History((PARENT, BEST), best=2)
    system, user = questions.to_advise(a_model_assignment(), history, BEST, 10**6)
    assert "PyTorch's rates and shares are the same bytes and FLOPs over its time" in system.text
    assert "| metric | PyTorch | v2 | v1 |" in user.text
