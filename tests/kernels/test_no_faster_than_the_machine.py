"""What no machine of this speed could do, and what only looks like it: the floor, and less work than written."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from apps.kernels.evaluation import ALGEBRA, EvaluationRequest, Time, Timing, Trial, Verdict
from apps.kernels.host.report import host_report
from apps.kernels.judge import ruling
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.memory import TensorSpec
from apps.kernels.machine import Bandwidth, Ceilings, HostReport
from apps.kernels.strength import Strength

MIB = 1 << 20
CEILINGS = Ceilings(
    peak_gflops={"fp32_1": 100.0, "fp32_all": 200.0},
    bandwidth=(
        Bandwidth("read", MIB, 2, 300.0),
        Bandwidth("copy", MIB, 2, 200.0),
        Bandwidth("read", 64 * MIB, 2, 40.0),
        Bandwidth("copy_nt", 64 * MIB, 2, 50.0),
        Bandwidth("read", 256 * MIB, 2, 60.0),  # spoiled above: what a larger set reached, a smaller one can too
    ),
)


def tensor(*shape: int) -> TensorSpec:
    count = 1
    for size in shape:
        count *= size
    return TensorSpec("float32", shape, (), 4 * count)


@pytest.fixture(scope="module")
def host() -> HostReport:
    return replace(host_report(quick=True), ceilings=CEILINGS)


def problem(*inputs: TensorSpec, output: TensorSpec) -> Any:
    return SimpleNamespace(inputs=inputs, outputs=(output,), views=(False,), outputs_share=False)


def findings(milliseconds: float, **strength: Any) -> Findings:
    found = Findings(EvaluationRequest("", ""), strength=Strength(**strength))
    found.timing = Timing(candidate=Time(milliseconds, (milliseconds, milliseconds)))
    return found


def session(opened: Any) -> Any:
    return SimpleNamespace(oracle=SimpleNamespace(problem=opened), tell=lambda *_: None, spend=lambda *_: None)


LARGE = problem(tensor(4096, 4096), output=tensor(4096, 4096))  # 64 MiB in, 64 MiB out


def test_the_floor_is_most_of_the_least_time_that_moving_takes(host: HostReport) -> None:
    floor = ruling.floor_of(LARGE, (1.0,), host)
    assert floor is not None
    assert floor.compulsory_bytes == 128 * MIB
    assert floor.gbytes_per_s == 60.0
    assert floor.floor_ms == pytest.approx(0.85 * 128 * MIB / 60e9 * 1e3)


def test_of_an_expanded_tensor_what_it_spans_counts(host: HostReport) -> None:
    mask, row = (
        TensorSpec("float32", (4096, 4096), (0, 1), 4 * 4096),
        TensorSpec("float32", (4096, 4096), (1, 0), 4 * 4096),
    )
    floor = ruling.floor_of(problem(mask, output=row), (1.0,), host)
    assert floor is not None and floor.compulsory_bytes == 2 * 4 * 4096


def test_only_elements_that_matter_count_and_what_is_not_known_does_not(host: HostReport) -> None:
    half = ruling.floor_of(LARGE, (0.5,), host)
    nothing = ruling.floor_of(LARGE, (), host)
    assert half is not None and half.compulsory_bytes == 96 * MIB
    assert nothing is not None and nothing.compulsory_bytes == 64 * MIB


def test_a_small_working_set_has_the_caches_bandwidth(host: HostReport) -> None:
    small = ruling.floor_of(problem(tensor(64, 1024), output=tensor(64, 1024)), (1.0,), host)
    assert small is not None and small.gbytes_per_s == 300.0
    assert ruling.floor_of(LARGE, (1.0,), replace(host, ceilings=Ceilings())) is None


def test_what_is_a_view_is_neither_written_nor_read(host: HostReport) -> None:
    view = SimpleNamespace(
        inputs=(tensor(4096, 4096),), outputs=(tensor(4096, 4096),), views=(True,), outputs_share=False
    )
    assert ruling.floor_of(view, (1.0,), host) is None or ruling.floor_of(view, (1.0,), host).compulsory_bytes == 0  # type: ignore[union-attr]
    twice = SimpleNamespace(inputs=(), outputs=(tensor(4096, 4096),) * 2, views=(False, False), outputs_share=True)
    found = ruling.floor_of(twice, (), host)
    assert found is not None and found.compulsory_bytes == 64 * MIB


def test_faster_than_memory_is_rejected_and_a_little_slower_is_not(host: HostReport) -> None:
    least = 128 * MIB / 60e9 * 1e3
    with pytest.raises(CandidateFailed, match="moving the 134 MB it must") as caught:
        ruling.judge_floor(session(LARGE), (found := findings(0.84 * least, dependence=(1.0,))), host)
    assert caught.value.verdict == Verdict.REJECTED.value and caught.value.rule == "under the floor"
    assert [(r.rule, r.where) for r in found.failed(caught.value).rejections] == [("under the floor", "timing")]
    passing = findings(0.86 * least, dependence=(1.0,))
    ruling.judge_floor(session(LARGE), passing, host)
    assert not passing.rejections
    assert passing.environment["floor"]["compulsory_bytes"] == 128 * MIB


def test_where_memory_was_never_measured_the_floor_is_said_to_be_unchecked(host: HostReport) -> None:
    for here in (None, replace(host, ceilings=Ceilings())):
        found = findings(0.001, dependence=(1.0,))
        ruling.judge_floor(session(LARGE), found, here)
        assert found.environment["floor"] == ruling.NO_FLOOR
        assert found.rejections == []


def test_less_work_than_written_is_said_and_checked_again(host: HostReport, monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[Findings] = []

    def check_again(_session: Any, found: Findings) -> int:
        again.append(found)
        found.trials.append(Trial("again, as given", "0", (), "float32", True))
        return 11

    monkeypatch.setattr(ruling, "check_again", check_again)
    usual = findings(1.0, flops=150_000_000)  # 150 GFLOP/s of 200
    ruling.judge_arithmetic(session(LARGE), usual, host)
    assert not again and not usual.robustness
    beyond = findings(1.0, flops=5_000_000_000)
    ruling.judge_arithmetic(session(LARGE), beyond, host)
    assert again == [beyond]
    (row,) = beyond.robustness
    assert row.name == ALGEBRA and row.holds and "5000 GFLOP/s" in row.detail and "11 of 11" in row.detail


def test_what_fails_when_checked_again_is_incorrect(host: HostReport, monkeypatch: pytest.MonkeyPatch) -> None:
    def check_again(_session: Any, _found: Findings) -> int:
        raise CandidateFailed("incorrect", "again, heavy-tailed: 3 of 9 elements are off")

    monkeypatch.setattr(ruling, "check_again", check_again)
    with pytest.raises(CandidateFailed, match="again, heavy-tailed"):
        ruling.judge_arithmetic(session(LARGE), findings(1.0, flops=5_000_000_000), host)
