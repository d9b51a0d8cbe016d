"""Figures, metrics and differences say what was measured: no more, no less, and the right way round."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from apps.kernels.evaluation import Metric, Profile
from apps.kernels.profile.names import UNITS
from apps.runs.presentation import figures, metrics
from apps.runs.presentation.charts import roofline_chart
from apps.runs.presentation.code import code_lines
from apps.runs.presentation.diffs import diff
from apps.runs.presentation.metrics import better_when, change_text, rows_against
from apps.runs.presentation.runs_table import spark_of
from apps.runs.templatetags import pages
from tests.pages import evaluations


@pytest.mark.parametrize(
    ("made", "read"),
    [
        (figures.speedup(4.516, 4.41, 4.63), "4.52× [4.41 – 4.63]"),
        (figures.speedup(None), "–"),
        (figures.ratio(0.94), "0.94×"),
        (figures.ratio(123.4), "123×"),
        (figures.milliseconds(0.431), "431 µs"),
        (figures.milliseconds(1950), "1.95 s"),
        (figures.duration(102), "1:42"),
        (figures.duration(7390), "2:03:10"),
        (figures.size(12 * 1024 * 1024), "12.0 MiB"),
        (figures.count(9_437_184, "FLOP"), "9.44 MFLOP"),
        (figures.money(None, unknown=True), "unknown"),
        (figures.money(0), "none"),
        (figures.percent(0.012), "1.2 %"),
        (figures.with_unit(3.0, "count"), "3"),
        (figures.with_unit(1.0, "loops"), "1 loop"),
        (figures.with_unit(1.0, "switches"), "1 switch"),
        (figures.with_unit(1.0, "misses"), "1 miss"),
        (figures.with_unit(0.0, "faults"), "0 faults"),
        (figures.with_unit(1.0, "GB/s"), "1 GB/s"),
        (figures.significant(float("nan")), "–"),
    ],
)
def test_a_figure_reads_as_people_write_it(made: str, read: str) -> None:
    assert made == read


@pytest.mark.parametrize(
    ("before", "after", "unit", "said"),
    [
        (41.2, 58.5, "GB/s", "+42 %"),
        (0.63, 0.9, "share", "+27 pt"),
        (256, 512, "bit", "2.00×"),
        (0.611, 0.431, "ms", "−29 %"),
        (0, 3, "count", "+3"),
    ],
)
def test_a_change_is_told_in_the_way_its_unit_asks_for(before: float, after: float, unit: str, said: str) -> None:
    assert change_text(before, after, unit) == said


def test_a_change_has_a_direction_of_its_own_and_noise_is_called_noise() -> None:
    before, after = evaluations.correct(0.611, vector_bits=256), evaluations.correct(0.431)
    rows = {row.name: row for row in rows_against(before, after)}
    assert (rows["time"].sign, rows["time"].tone) == ("▼", "good")
    assert (rows["achieved_bandwidth"].sign, rows["achieved_bandwidth"].tone) == ("▲", "good")
    assert (rows["minor_faults_per_call"].beyond_noise, rows["minor_faults_per_call"].tone) == (False, "")
    worse = {row.name: row for row in rows_against(after, before)}
    assert (worse["time"].tone, worse["hot_loop_vector_bits"].tone) == ("bad", "bad")


def test_a_time_within_both_intervals_is_noise_and_one_beyond_is_not() -> None:
    base = evaluations.correct(0.400)
    assert rows_against(base, evaluations.correct(0.408))[0].beyond_noise is False
    assert rows_against(base, evaluations.correct(0.440))[0].beyond_noise is True


def test_what_the_problem_gives_alike_to_both_sides_is_left_out_of_a_comparison() -> None:
    before, after = evaluations.correct(0.611), evaluations.correct(0.431)
    assert "compulsory_bytes" not in {row.name for row in rows_against(before, after)}
    assert "compulsory_bytes" in {row.name for row in rows_against(None, after)}


def test_every_metric_with_a_direction_is_one_that_the_profiler_knows() -> None:
    known = {*UNITS, "time", "time_over_reference"}
    assert {name for name in known if better_when(name)} >= {"achieved_bandwidth", "minor_faults_per_call"}
    assert known >= metrics._MORE_IS_BETTER | metrics._LESS_IS_BETTER | metrics._GIVEN | metrics._OF_TIME


def test_a_metric_that_one_side_lacks_is_shown_without_a_change() -> None:
    after = replace(evaluations.correct(0.4), profile=Profile("pmu", (Metric("ipc", 2.1, "", "perf"),)))
    row = next(row for row in rows_against(evaluations.correct(0.5), after) if row.name == "ipc")
    assert (row.before, row.after, row.change, row.beyond_noise) == ("–", "2.10", "", None)


def test_eager_stands_under_the_same_roof_in_proportion_to_its_time() -> None:
    chart = roofline_chart([("v4", evaluations.correct(0.431), "now")])
    assert chart is not None
    points = {point.name: point for point in chart.points}
    assert points["eager"].gflops == pytest.approx(points["v4"].gflops * 0.431 / evaluations.REFERENCE_MS)
    assert points["v4"].share == pytest.approx(0.898, abs=1e-3)


def test_a_difference_marks_words_folds_what_is_the_same_and_escapes_all() -> None:
    left = "\n".join([*(f"line {i}" for i in range(20)), 'x = "<b>"', "end"])
    right = left.replace('"<b>"', '"<i>"')
    made = diff(left, right)
    assert (made.added, made.removed) == (1, 1)
    changed = next(line for stretch in made.stretches for line in stretch.lines if line.kind == "change")
    assert changed.left == "x = <mark>&quot;&lt;b&gt;&quot;</mark>"
    assert [len(stretch.lines) for stretch in made.stretches if stretch.folded] == [17]
    numbers = [line.left_number for stretch in made.stretches for line in stretch.lines if line.left_number]
    assert numbers == list(range(1, 23))
    assert diff(left, left).same


def test_a_remark_stands_beside_the_line_of_the_kernel_it_speaks_of() -> None:
    source = 'import x\nSOURCE = r"""\n#include <cmath>\nint f();\n"""\n'
    lines = code_lines(source, ("kernel.cpp:3:1: missed: no loop", "elsewhere"))
    assert len(lines) == source.count("\n")
    assert lines[3].remarks == ("missed: no loop",)
    assert all(not line.remarks for line in lines if line.number != 4)


def test_a_sparkline_marks_failures_and_never_falls() -> None:
    spark = spark_of([1.9, None, 3.1, 2.0])
    assert spark is not None
    assert (len(spark.failures), spark.words) == (1, "4 versions, 1 failed, best 3.10×")
    heights = [float(part.split("H")[0]) for part in spark.path.split("V")[1:]]
    assert heights == sorted(heights, reverse=True)
    assert spark_of([]) is None


@pytest.mark.parametrize("style", ["relative", "clock"])
def test_a_time_has_the_digits_that_browsers_read(style: str) -> None:
    at = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
    assert 'datetime="2026-01-31T12:00:00.123+00:00"' in pages.when({}, at, style)
