"""Other programs' work while something is timed: counted apart from the judge's own, and enough to drop a group."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.kernels.judge.bystanders import DISTURBED, Bystanders, seconds_taken


@pytest.fixture
def busy() -> Iterator[int]:
    """A program that does nothing but compute, by its process id."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    time.sleep(0.2)
    yield process.pid
    process.kill()
    process.wait()


def test_a_busy_program_beside_the_judge_disturbs(busy: int) -> None:
    watching = Bystanders([])
    time.sleep(0.8)
    assert watching.share() > DISTURBED


def test_the_judges_own_processes_are_no_bystanders(busy: int) -> None:
    """Seen twice over the same time: what is one's own is taken out."""
    all_others, without = Bystanders([]), Bystanders([busy])
    time.sleep(0.8)
    assert without.share() < all_others.share() - DISTURBED


def test_only_the_processors_in_use_are_counted(tmp_path: Path) -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    stat = tmp_path / "stat"
    rows = [f"cpu{n} {ticks * (n + 1)} 0 {ticks} 999 9 0 0 {ticks} 0 0" for n in range(4)]
    stat.write_text("\n".join(["cpu 1 1 1 1 1 1 1 1 0 0", *rows, "intr 5 cpu0"]))
    assert seconds_taken({0, 2}, stat) == (1 + 2) + (3 + 2)
    assert seconds_taken({0}, tmp_path / "nowhere") == 0


def test_too_short_a_time_says_nothing() -> None:
    assert Bystanders([]).share() == 0.0


def test_a_process_that_ended_meanwhile_is_no_error() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    watching = Bystanders([process.pid])
    process.wait()
    time.sleep(0.2)
    assert 0.0 <= watching.share() <= 1.0
