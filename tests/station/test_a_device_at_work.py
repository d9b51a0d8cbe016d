"""A desk with its bench: done, cancelled, killed. Each order ends, and nothing that ran for it is left."""

from __future__ import annotations

import os
import queue
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.kernels.facts import ProblemFacts
from apps.kernels.plain import from_plain
from apps.station.desk import Desk, bench_environment
from apps.station.messages import LASTING, Order, ReportKind
from tests.patience import PATIENCE, until
from tests.processes.census import Seen, descendants
from tests.processes.problems import HANGS, PROBLEM

pytestmark = [pytest.mark.judge, pytest.mark.processes]


class Told:
    """What the desk reported."""

    def __init__(self) -> None:
        self._said: queue.Queue[tuple[int, ReportKind, Any, bool]] = queue.Queue()

    def __call__(self, order: Order, kind: ReportKind, payload: Any, in_jail: bool) -> None:
        self._said.put((order.job, kind, payload, in_jail))

    def until(self, *kinds: ReportKind, in_jail: bool | None = None) -> tuple[int, ReportKind, Any, bool]:
        """The next report of one of those kinds."""
        limit = time.monotonic() + PATIENCE
        while True:
            said = self._said.get(timeout=max(0.1, limit - time.monotonic()))
            if said[1] in kinds and in_jail in (None, said[3]):
                return said

    def forget(self) -> None:
        """Drop what nobody has asked for yet."""
        while not self._said.empty():
            self._said.get_nowait()


@pytest.fixture(scope="module")
def ear() -> Told:
    """What the one desk of this module reports to."""
    return Told()


@pytest.fixture(scope="module")
def station(ear: Told) -> Iterator[Desk]:
    """One desk for all tests here, so that torch is imported as seldom as on a real host."""
    with tempfile.TemporaryDirectory(prefix="pragma-station-") as place:
        Path(place).chmod(0o711)
        desk = Desk("cpu", ear, bench_environment(place))
        desk.start()
        yield desk
        desk.close()


@pytest.fixture
def desk(station: Desk, ear: Told) -> Desk:
    """The desk with nothing to do and nothing left to hear, whatever the test before came to."""
    for doing in station.doing():
        station.cancel(doing.job, doing.attempt)
    until(lambda: not station.doing(), "the desk does not come to rest")
    ear.forget()
    return station


@pytest.fixture
def told(desk: Desk, ear: Told) -> Told:
    """What the desk reports from here on."""
    return ear


def bench_at_work() -> tuple[Seen, list[Seen]]:
    """The desk's bench, and everybody below it. Other tests' jails may live below this very process: they are not asked for."""
    bench = next(process for process in descendants(os.getpid()) if "apps.station.bench" in process.command)
    below = descendants(bench.pid)
    assert [process for process in below if process.is_jailed], "no jail runs"
    return bench, below


def order(job: int, source: str, attempt: int = 1) -> Order:
    return Order(job, attempt, "inspect", "cpu", {"problem": source, "overrides": {}})


def test_a_problem_is_looked_at(desk: Desk, told: Told) -> None:
    desk.put(order(1, PROBLEM.format(extra="")))
    assert told.until(ReportKind.STARTED)[0] == 1
    _, kind, payload, _ = told.until(*LASTING)
    assert kind is ReportKind.DONE
    facts = from_plain(ProblemFacts, payload)
    assert (facts.refusal, facts.inputs[0].shape) == (None, (256,))
    until(lambda: not desk.doing(), "the desk still holds an order that is done")


def test_what_this_station_does_not_know_fails_with_a_reason(desk: Desk, told: Told) -> None:
    desk.put(Order(2, 1, "levitate", "cpu"))
    _, kind, payload, _ = told.until(*LASTING)
    assert kind is ReportKind.FAILED
    assert "levitate" in payload["error"]


def test_cancelled_its_jail_is_killed_and_the_next_order_done(desk: Desk, told: Told) -> None:
    desk.put(order(3, HANGS))
    desk.put(order(4, PROBLEM.format(extra="")))
    desk.put(order(5, HANGS))
    told.until(ReportKind.PROGRESS, in_jail=True)
    _, below = bench_at_work()
    assert [doing.job for doing in desk.doing()] == [3, 4, 5]
    assert desk.doing()[0].in_jail
    desk.cancel(5, 1)
    desk.cancel(3, 1)
    assert told.until(*LASTING)[:2] == (3, ReportKind.CANCELLED)
    until(lambda: not [p for p in below if p.lives and p.is_jailed], "the cancelled job's jail still runs")
    assert told.until(*LASTING)[:2] == (4, ReportKind.DONE)


def test_a_bench_that_is_killed_takes_its_jail_along_and_is_replaced(desk: Desk, told: Told) -> None:
    desk.put(order(6, HANGS))
    told.until(ReportKind.PROGRESS, in_jail=True)
    bench, below = bench_at_work()
    os.kill(bench.pid, signal.SIGKILL)
    job, kind, payload, in_jail = told.until(*LASTING)
    assert (job, kind, in_jail) == (6, ReportKind.BROKE, True)
    assert "signal 9" in payload["error"]
    until(lambda: not [process for process in [bench, *below] if process.lives], "something of the bench outlives it")
    desk.put(order(6, PROBLEM.format(extra=""), attempt=2))
    assert told.until(*LASTING)[:2] == (6, ReportKind.DONE)
