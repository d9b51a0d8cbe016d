"""What keeps a call from being prepared: a process that stands still, inputs that are new, outputs of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from apps.kernels.inside.comparer import FLOATS, thinning
from apps.kernels.inside.values import DTYPES
from apps.kernels.jail import freeze as ice
from apps.kernels.judge.ahead import Fastest, _begun
from apps.kernels.judge.errors import LONGEST_DETAIL, CandidateFailed
from apps.kernels.judge.memory import TensorSpec
from apps.kernels.judge.runner import Pause


def test_who_was_woken_has_had_a_turn() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        ice.freeze(busy.pid)
        before = ice.turns(busy.pid)
        if not before:
            pytest.skip("this kernel doesn't count turns")
        time.sleep(0.05)
        assert ice.turns(busy.pid) == before
        os.kill(busy.pid, signal.SIGCONT)
        time.sleep(0.2)
        ice.freeze(busy.pid)
        assert ice.turns(busy.pid) != before
    finally:
        busy.kill()
        busy.wait()


@pytest.mark.parametrize("name", FLOATS)
def test_thinned_numbers_stay_where_they_belong(name: str) -> None:
    kept = thinning(name, torch.Generator().manual_seed(3))
    assert kept is not None
    kind = DTYPES[name]
    for value in (0.0, 1.0, -2.0, 6.0, torch.inf, -torch.inf):
        thin = (torch.full((kept.numel(),), value, dtype=kind).view(kept.dtype) & kept).view(kind)
        assert bool((thin == value).all()), f"{value} is a round number, or none"
    numbers = torch.rand(kept.numel(), dtype=torch.float64).add(1).to(kind)
    thin = (numbers.view(kept.dtype) & kept).view(kind)
    assert bool((thin <= numbers).all()) and bool((thin.double() >= numbers.double() * 0.875).all())
    assert float((thin != numbers).double().mean()) > 0.6
    assert bool((torch.full((kept.numel(),), 101.0, dtype=kind).view(kept.dtype) & kept).view(kind).frac().eq(0).all())
    assert thinning("int64", torch.Generator()) is None


@pytest.mark.parametrize(
    ("shape", "stride", "shares"),
    [
        ((4, 8), (8, 1), False),
        ((4, 8), (1, 4), False),
        ((4, 8), (16, 2), False),
        ((4, 8), (0, 1), True),
        ((100, 16), (1, 1), True),
        ((1, 8), (0, 1), False),
        ((0, 8), (0, 1), False),
        ((), (), False),
        ((2, 3, 4), (12, 4, 1), False),
        ((2, 3, 4), (8, 4, 1), True),
    ],
)
def test_which_elements_share_memory(shape: tuple[int, ...], stride: tuple[int, ...], shares: bool) -> None:
    assert TensorSpec("float32", shape, stride, 0).shares_memory == shares


def test_no_more_calls_have_begun_than_clock_or_processor_allow() -> None:
    fastest = Fastest(seconds=100e-6, cpu=90e-6)
    nothing = Pause(0.0, lambda: None, taken=40e-6, cpu=30e-6)
    assert _begun(nothing, fastest, 100e-6, 800_000) == 1
    assert _begun(nothing, fastest, 10e-6, 800_000) == 9, "this very window was faster"
    by_cpu = Pause(0.0, lambda: None, taken=40e-6, cpu=180e-6)
    assert _begun(by_cpu, fastest, 100e-6, 800_000) == 5


def test_a_candidate_s_words_can_be_stored_and_shown() -> None:
    said = CandidateFailed("crashed", "a\x00b\x1b[31m\ud800\n\tc" + "x" * 10**6).detail
    said.encode()
    assert said.startswith("a\N{REPLACEMENT CHARACTER}b") and "\n\tc" in said
    assert "\x00" not in said and len(said) <= LONGEST_DETAIL + 1
