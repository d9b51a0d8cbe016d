"""Short calls are timed several to a window; with many threads windows last longer, with up to four as they always did."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from apps.kernels.judge.timing import (
    ARENA_BYTES,
    LARGEST_BLOCK,
    LARGEST_DRAWN_BLOCK,
    LARGEST_UPDATING_BLOCK,
    TARGET_SECONDS,
    block_size,
    target_seconds,
)


def a_session(threads: int, bytes_a_call: int = 1 << 16, mixing: bool = True, updated: tuple[str, ...] = ()) -> Any:
    problem = SimpleNamespace(input_bytes=bytes_a_call // 2, output_bytes=bytes_a_call // 2, updated=updated)
    contents = SimpleNamespace(mixing=mixing)
    return SimpleNamespace(threads=threads, oracle=SimpleNamespace(problem=problem), contents=contents)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_nothing_changes_with_up_to_four_threads(threads: int) -> None:
    assert target_seconds(threads) == TARGET_SECONDS == 0.003
    assert block_size(a_session(threads), 0.0001) == 30
    assert block_size(a_session(threads), 0.0031) == 1


def test_waking_threads_takes_the_same_share_of_a_window_with_more_of_them() -> None:
    assert [round(target_seconds(threads) / threads, 6) for threads in (4, 8, 16, 32)] == [0.00075] * 4
    assert block_size(a_session(16), 0.0001) == 120 and block_size(a_session(16), 0.0031) == 4


def test_windows_and_what_lies_in_memory_for_them_stay_bounded() -> None:
    assert target_seconds(1024) == target_seconds(32) == 8 * TARGET_SECONDS
    assert block_size(a_session(1024), 1e-9) == LARGEST_BLOCK
    assert block_size(a_session(16, ARENA_BYTES // 3), 0.0001) == 3
    assert block_size(a_session(16, 2 * ARENA_BYTES), 0.0001) == 1
    assert block_size(a_session(2, mixing=False), 0.0001) == LARGEST_DRAWN_BLOCK
    assert block_size(a_session(2, updated=("mean",)), 0.0001) == LARGEST_UPDATING_BLOCK
