"""What of a long profile is shown first."""

from __future__ import annotations

from apps.runs.presentation.metrics import MetricRow, at_a_glance


def row(name: str, tone: str = "") -> MetricRow:
    return MetricRow(name, name, "1", "2", "2.00×", "▲", tone, bool(tone), "timing")


def test_what_everyone_asks_for_and_what_changed_for_better_or_worse_comes_first() -> None:
    rows = [row("time"), row("hot_loop_loads"), row("hot_loop_spills", "bad"), row("hot_loop_fma")]
    first, others = at_a_glance(rows)
    assert [r.name for r in first] == ["time", "hot_loop_spills"]
    assert [r.name for r in others] == ["hot_loop_loads", "hot_loop_fma"]
