"""Other programs' work while something is timed: counted apart from the judge's own, and enough to drop a group."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from apps.kernels.judge.bystanders import DISTURBED, Bystanders


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


def test_too_short_a_time_says_nothing() -> None:
    assert Bystanders([]).share() == 0.0


def test_a_process_that_ended_meanwhile_is_no_error() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    watching = Bystanders([process.pid])
    process.wait()
    time.sleep(0.2)
    assert 0.0 <= watching.share() <= 1.0
