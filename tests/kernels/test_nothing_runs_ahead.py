"""What keeps a call from being prepared: a process that stands still, inputs that are new, outputs of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import cast

import pytest
import torch

from apps.kernels.inside.comparer import FLOATS, thinning
from apps.kernels.inside.values import DTYPES
from apps.kernels.jail import freeze as ice
from apps.kernels.jail.touched import Touched
from apps.kernels.judge import ahead
from apps.kernels.judge.ahead import Fastest, _begun
from apps.kernels.judge.errors import LONGEST_DETAIL, CandidateFailed
from apps.kernels.judge.memory import Place, TensorSpec
from apps.kernels.judge.runner import LATE_NS, Pause, Runner
from apps.kernels.judge.session import Session
from apps.kernels.judge.timing import TRIES_TO_LOOK, TRIES_WHERE_LATE, Group, Timer
from apps.kernels.judge.windows import Window

COPYING = """
import os, threading, time
size = 256 << 20
memory = bytearray(size)
file = os.memfd_create("copied")
os.ftruncate(file, size)
os.preadv(file, [memory], 0)
def work():
    while True:
        os.preadv(file, [memory], 0)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
print("ready", flush=True)
time.sleep(60)
"""


def test_what_a_thread_does_in_a_long_system_call_after_the_others_stopped_is_seen() -> None:
    copying = subprocess.Popen([sys.executable, "-c", COPYING], stdout=subprocess.PIPE)
    try:
        assert copying.stdout and copying.stdout.readline()
        if not ice.turns(copying.pid):
            pytest.skip("this kernel doesn't count turns")
        for _ in range(5):
            still = ice.freeze(copying.pid)
            os.kill(copying.pid, signal.SIGCONT)
            if still.worked > LATE_NS and still.all - still.called > LATE_NS:
                return
            time.sleep(0.03)
        pytest.fail(f"a copy of 256 MiB took no time: {still}")
    finally:
        copying.kill()
        copying.wait()


def test_who_was_woken_has_had_a_turn() -> None:
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        started = time.perf_counter_ns()
        still = ice.freeze(busy.pid)
        assert started < still.called <= still.all < time.perf_counter_ns()
        before = ice.turns(busy.pid)
        if not before:
            pytest.skip("this kernel doesn't count turns")
        time.sleep(0.05)
        assert ice.turns(busy.pid) == before
        assert ice.since(before, ice.turns(busy.pid)) == ""
        os.kill(busy.pid, signal.SIGCONT)
        time.sleep(0.2)
        ice.freeze(busy.pid)
        assert ice.turns(busy.pid) != before
        assert re.fullmatch(rf"thread {busy.pid}: \d+ µs in \d+ turns", ice.since(before, ice.turns(busy.pid)))
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


@dataclass
class Stopped:
    """Stands for a runner whose window of eight calls of 100 µs is stopped so many seconds after its beginning."""

    taken: float | None

    @property
    def jailed(self) -> Stopped:
        return self

    @property
    def pid(self) -> int:
        return os.getpid()

    def call(self, order: list[int], *, keep: int, timeout: float, pause: Pause) -> Window:
        assert keep == 1 and timeout
        if self.taken is not None:
            pause.taken, pause.cpu = self.taken, self.taken
            pause.meanwhile()
        return Window(800_000, [[] for _ in order], 800_000)

    def refuse_more_mappings(self, size: int) -> None:
        assert size == 4096

    def place(self, index: int) -> tuple[Place, ...]:
        return (Place(4096 * index, 4096, 4096 * index),)


@pytest.mark.parametrize(
    ("taken", "says", "looked"),
    [(None, None, 0), (40e-6, "it had read the inputs of 1 calls", 1), (500e-6, None, 0)],
)
def test_what_was_read_is_looked_at_only_where_it_can_tell_something(
    monkeypatch: pytest.MonkeyPatch, taken: float | None, says: str | None, looked: int
) -> None:
    looks: list[str] = []

    def touched(_pid: int, name: str) -> list[Touched]:
        looks.append(name)
        return [Touched(4096 * 7, 4096, 4096)]  # the inputs of the last call

    monkeypatch.setattr(ahead, "forget", lambda _pid: True)
    monkeypatch.setattr(ahead, "touched", touched)
    found = ahead.look(cast("Runner", Stopped(taken)), list(range(8)), Fastest(100e-6, 90e-6), 10.0)
    assert len(looks) == looked
    assert found is None if says is None else says in (found or "")


class LateTimer(Timer):
    """A timer whose looks tell something or don't, as it is said; counts them."""

    tells, tries = False, 0

    def _looked_ahead(self, group: Group, name: str) -> bool:
        self.tries += 1
        return self.tells


def test_where_stops_come_too_late_few_more_are_tried() -> None:
    timer = LateTimer(cast("Session", None))
    tries = []
    for timer.tells in (False, False, True, False):
        timer.tries = 0
        timer._look_ahead(Group({}, 8), ("candidate",))
        tries.append(timer.tries)
    timer.close()
    assert tries == [TRIES_TO_LOOK, TRIES_WHERE_LATE, 1, TRIES_TO_LOOK]


def test_a_candidate_s_words_can_be_stored_and_shown() -> None:
    said = CandidateFailed("crashed", "a\x00b\x1b[31m\ud800\n\tc" + "x" * 10**6).detail
    said.encode()
    assert said.startswith("a\N{REPLACEMENT CHARACTER}b") and "\n\tc" in said
    assert "\x00" not in said and len(said) <= LONGEST_DETAIL + 1
