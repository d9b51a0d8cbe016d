"""Margins come from what earlier judgements of the same code against itself showed on this host."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from apps.kernels.host import noise
from apps.kernels.judge import statistics

KIND = statistics.kind_of_call(0.005)


@pytest.fixture(autouse=True)
def a_host_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRAGMA_MEASUREMENTS", str(tmp_path))
    return tmp_path


def test_a_new_host_has_the_smallest_margin() -> None:
    assert statistics.margin(noise.noise_of_this_host(), 0.005) == statistics.SMALLEST_MARGIN


def test_a_few_measurements_say_nothing_yet() -> None:
    for _ in range(noise.ENOUGH - 1):
        noise.keep_noise(KIND, 0.03)
    assert noise.noise_of_this_host() == {}


def test_the_margin_follows_what_was_seen_whichever_side_it_fell_on() -> None:
    for number in range(noise.ENOUGH):
        noise.keep_noise(KIND, (-1) ** number * 0.03)
    assert statistics.margin(noise.noise_of_this_host(), 0.005) == pytest.approx(math.expm1(0.03))


def test_one_odd_judgement_in_many_does_not_make_the_host_blind() -> None:
    for number in range(40):
        noise.keep_noise(KIND, 0.4 if number == 7 else 0.002)
    assert noise.noise_of_this_host()[KIND] == pytest.approx(0.002)


def test_old_measurements_are_forgotten() -> None:
    for _ in range(noise.KEPT):
        noise.keep_noise(KIND, 0.2)
    for _ in range(noise.KEPT):
        noise.keep_noise(KIND, 0.004)
    assert noise.noise_of_this_host()[KIND] == pytest.approx(0.004)


def test_a_spoiled_record_is_begun_anew(a_host_of_its_own: Path) -> None:
    (a_host_of_its_own / "noise.json").write_text("{not json")
    noise.keep_noise(KIND, math.inf)
    assert noise.noise_of_this_host() == {}
    for _ in range(noise.ENOUGH):
        noise.keep_noise(KIND, 0.01)
    assert KIND in noise.noise_of_this_host()
