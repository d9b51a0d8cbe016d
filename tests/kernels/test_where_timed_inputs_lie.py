"""Where the inputs of a timed call lie in memory, and where its threads wake up: neither may be one process's luck."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from apps.kernels.host.processor import Processor
from apps.kernels.jail import freeze as ice
from apps.kernels.jail.placing import awake_apart, that_worked
from apps.kernels.judge import timing
from apps.kernels.judge.memory import ALIGNMENT, PAGE, Sweep, TensorSpec, contiguous_stride, flush, scattered
from apps.kernels.judge.timing import WAYS, regions_of, ways_of
from apps.kernels.judge.windows import Output
from apps.kernels.machine import Cache


def spec(*shape: int) -> TensorSpec:
    stride = contiguous_stride(shape)
    return TensorSpec("float32", shape, stride, 4 * stride[0] * shape[0])


SPECS = [spec(33, 7), spec(1), spec(512, 512)]


def test_each_tensor_lies_within_its_pages_and_as_aligned_as_torch_aligns() -> None:
    places = scattered(SPECS, 5, 4)
    assert len(places.rows) == 20
    for row in places.rows:
        for tensor, place in zip(SPECS, row, strict=True):
            assert place.page <= place.at
            assert place.at + tensor.bytes <= place.page + place.size
            assert place.at % ALIGNMENT == 0
            assert place.at - place.page < 2 * PAGE


def test_regions_share_no_page_and_the_ways_of_one_share_theirs() -> None:
    places = scattered(SPECS, 6, 3)
    regions = [{(place.page, place.size) for place in places.rows[first]} for first in places.firsts]
    ranges = sorted((page, page + size) for region in regions for page, size in region)
    assert all(end <= start for (_, end), (start, _) in pairwise(ranges))
    assert ranges[-1][1] == places.bytes
    for first, region in zip(places.firsts, regions, strict=True):
        for row in places.rows[first : first + places.ways]:
            assert {(place.page, place.size) for place in row} == region


def test_tensors_lie_to_each_other_in_many_ways_within_a_page() -> None:
    places = scattered(SPECS, 1, WAYS)
    between = {(row[0].at - row[2].at) % PAGE for row in places.rows}
    assert len(between) > WAYS // 2


def test_a_window_takes_each_region_once_and_any_of_its_ways() -> None:
    places = scattered(SPECS, 4, 8)
    drawn = [places.draw(3) for _ in range(200)]
    assert all(len({row // places.ways for row in rows}) == 3 for rows in drawn)
    assert {row for rows in drawn for row in rows} == set(range(32))


def test_a_short_call_has_as_many_ways_over_all_regions_as_a_long_one() -> None:
    for block in (1, 2, 7, 15, 16, 256):
        assert regions_of(block) >= block
        assert regions_of(block) * ways_of(block) >= WAYS
    assert ways_of(256) == 1


def test_for_checking_tensors_lie_against_what_cannot_be_touched() -> None:
    before, after = flush([spec(100)], 2).rows
    assert before[0].at + 400 <= before[0].page + before[0].size < before[0].at + 400 + ALIGNMENT
    assert after[0].at == after[0].page


BUSY_THREAD = """
import sys, threading
threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def frozen() -> Iterator[int]:
    """A process with a busy second thread, standing still; its number."""
    with subprocess.Popen([sys.executable, "-c", BUSY_THREAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as busy:
        assert busy.stdout is not None
        busy.stdout.readline()
        ice.freeze(busy.pid)
        try:
            yield busy.pid
        finally:
            busy.kill()


def test_threads_that_worked_wake_on_processors_of_their_own_and_may_move_afterwards() -> None:
    ours = os.sched_getaffinity(0)
    with frozen() as pid:
        (other,) = (thread for thread in ice.turns(pid) if thread != pid)
        with awake_apart(pid, {pid: 5, other: 10**6}):
            if len(ours) > 1:
                first, second = sorted(ours)[:2]
                assert os.sched_getaffinity(pid) == {first}
                assert os.sched_getaffinity(other) == {second}
        assert os.sched_getaffinity(pid) == os.sched_getaffinity(other) == ours


def test_a_thread_that_chose_its_processors_keeps_them() -> None:
    ours = os.sched_getaffinity(0)
    with frozen() as pid:
        os.sched_setaffinity(pid, {max(ours)})
        with awake_apart(pid, {pid: 10**6}):
            assert os.sched_getaffinity(pid) == {max(ours)}
        assert os.sched_getaffinity(pid) == {max(ours)}


def test_who_did_nothing_in_the_last_window_is_not_placed() -> None:
    assert that_worked(7, {7: 1000, 9: 900, 8: 950, 10: 20}) == [7, 8, 9]
    assert that_worked(7, {}) == [7]


@pytest.mark.parametrize(
    ("caches", "cores", "in_all"),
    [
        ([(1, 32, 1), (2, 512, 1), (3, 16384, 2)], 2, 2 * 32 + 2 * 512 + 16384),
        ([(1, 32, 2), (2, 1024, 2), (3, 32768, 16)], 64, 0),  # several last caches: who is called may find another's
        ([], 4, 0),
    ],
)
def test_inputs_are_laid_once_where_one_last_cache_serves_all(
    caches: list[tuple[int, int, int]], cores: int, in_all: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = Processor("of a test", cores, 256, tuple(Cache(level, size, shared) for level, size, shared in caches))
    monkeypatch.setattr(timing, "processor", lambda: here)
    assert timing.cache_bytes_in_all() == in_all


def test_a_sweep_leaves_the_judge_where_it_may_run() -> None:
    ours = os.sched_getaffinity(0)
    sweep = Sweep((Cache(2, 4096, 1), Cache(3, 65536, 2)))
    sweep()
    assert os.sched_getaffinity(0) == ours
    sweep.close()


def test_pages_of_an_output_lie_within_it_at_the_same_places_each_time() -> None:
    output = Output(1000, spec(33, 77))
    pages = output.pages([0.0, 0.5, 0.999999])
    assert pages == output.pages([0.0, 0.5, 0.999999])
    assert pages[0] == (0, PAGE) and all(at % 4 == 0 and at + size <= output.spec.bytes for at, size in pages)
    assert Output(0, spec(0, 4)).pages([0.5]) == []
    assert Output(0, spec(2, 4)).pages([0.9]) == [(0, 32)]
