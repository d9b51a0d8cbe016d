"""Ceilings are measured by our own program, kept by the machine's identity, and measured again only for another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from apps.kernels.evaluation import Progress
from apps.kernels.host import ceilings as room
from apps.kernels.host.processor import Processor, processor
from apps.kernels.host.report import host_report
from apps.kernels.machine import Cache, Ceilings
from apps.kernels.plain import from_plain, to_plain


@pytest.fixture(scope="module")
def measured() -> tuple[room.KeptCeilings, list[Progress]]:
    seen: list[Progress] = []
    return room.measure_ceilings(observe=seen.append, budget_ms=3, rounds=1), seen


@pytest.fixture
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRAGMA_MEASUREMENTS", str(tmp_path))
    monkeypatch.setenv("PRAGMA_LOCKS", str(tmp_path))
    return tmp_path


def test_every_mix_is_measured_for_every_working_set_and_thread_count(
    measured: tuple[room.KeptCeilings, list[Progress]],
) -> None:
    result = measured[0].ceilings
    here = processor()
    sizes = set(room.working_sets(here))
    for threads in {1, here.cores}:
        mixes = {b.mix for b in result.bandwidth if b.threads == threads}
        assert {"read", "write", "copy", "triad"} <= mixes
        assert {b.working_set_bytes for b in result.bandwidth if b.threads == threads} <= sizes
    assert set(result.peak_gflops) == {"fp32_1", "fp32_all", "fp64_1", "fp64_all"}


def test_figures_stand_to_each_other_as_hardware_does(measured: tuple[room.KeptCeilings, list[Progress]]) -> None:
    result = measured[0].ceilings
    # twice as many float32 lanes as float64 ones; a busy machine may cost either a little
    assert 1.5 < result.peak_gflops["fp32_1"] / result.peak_gflops["fp64_1"] < 2.7
    alone = {b.working_set_bytes: b.gbytes_per_s for b in result.bandwidth if b.mix == "read" and b.threads == 1}
    assert alone[min(alone)] > alone[max(alone)]
    assert result.parallel_region_us and result.parallel_region_us > 0
    assert result.page_fault_us and result.page_fault_us > 0.01


def test_progress_goes_from_nothing_to_all(measured: tuple[room.KeptCeilings, list[Progress]]) -> None:
    fractions = [p.fraction for p in measured[1] if p.fraction is not None]
    assert fractions == sorted(fractions)
    assert fractions[-1] == pytest.approx(1.0)


def test_kept_ceilings_are_not_measured_again(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def measure(**_: object) -> room.KeptCeilings:
        calls.append(1)
        return room.KeptCeilings("2026-01-01T00:00:00+00:00", "here", Ceilings({"fp32_all": 7.0}))

    monkeypatch.setattr(room, "measure_ceilings", measure)
    assert room.ceilings(quick=True) == Ceilings()
    assert room.ceilings().peak_gflops == {"fp32_all": 7.0}
    assert room.ceilings().peak_gflops == {"fp32_all": 7.0}
    assert len(calls) == 1
    kept = room.kept_ceilings()
    assert kept is not None
    assert kept.measured.startswith("2026-01-01")

    monkeypatch.setattr(room, "machine_identity", lambda: "another machine")
    room.ceilings()
    assert len(calls) == 2
    assert len(list((own_place / "ceilings").iterdir())) == 2


def test_a_spoiled_file_is_measured_over(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "machine_identity", lambda: "m")
    monkeypatch.setattr(room, "measure_ceilings", lambda **_: room.KeptCeilings("now", "m", Ceilings({"fp32_1": 1.0})))
    room.ceilings()
    (path,) = (own_place / "ceilings").iterdir()
    path.write_text("{half")
    assert room.ceilings().peak_gflops == {"fp32_1": 1.0}
    assert json.loads(path.read_text())["machine"] == "m"


def test_without_a_compiler_the_report_says_what_to_install(own_place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "host_compiler", lambda: None)
    report = host_report()
    assert report.ceilings == Ceilings()
    assert "package g++" in str(report.environment["ceilings_unavailable"])


def test_the_report_survives_the_wire(own_place: Path) -> None:
    report = host_report(quick=True)
    assert report.devices[0].kind == "cpu"
    assert report.cores >= 1
    assert "python" in report.toolchains
    assert report.counters_detail
    assert from_plain(type(report), json.loads(json.dumps(to_plain(report)))) == report


def test_working_sets_step_over_each_cache_and_respect_memory() -> None:
    eight = Processor("p", 8, 256, (Cache(1, 32 << 10, 1), Cache(2, 1 << 20, 2), Cache(3, 16 << 20, 8)))
    sizes = room.working_sets(eight, 1 << 30)
    assert {16 << 10, 128 << 10, 512 << 10, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20, 128 << 20} == set(
        sizes
    )
    assert max(room.working_sets(eight, 512 << 20)) == 64 << 20
