"""Several threads mix what one would, and what lies in an arena can't be written by whoever is given it."""

from __future__ import annotations

import mmap
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from apps.kernels.inside.comparer import EDGE, PATTERN, ROWS_TO_SHARE, Mixers, mix
from apps.kernels.judge.memory import Arena, TensorSpec, contiguous_stride, scattered

COUNT = PATTERN * (ROWS_TO_SHARE + 1) + 17


def _mixed(threads: int, *, alike: bool = False, lent: bool = False) -> torch.Tensor:
    size = 4 * COUNT
    with mmap.mmap(-1, 3 * size) as bank, mmap.mmap(-1, 3 * size) as other, ThreadPoolExecutor(threads) as pool:
        everything = torch.frombuffer(bank, dtype=torch.float32, count=3 * COUNT)
        everything.copy_(torch.randn(3 * COUNT, generator=torch.Generator().manual_seed(1)))
        order = {"mix": [[[0], [size], [2 * size], 5, alike, lent]], "specs": [[size, "float32"]]}
        mix(bank, other, order, Mixers(pool, threads))
        found = torch.frombuffer(other if lent else bank, dtype=torch.int32, count=3 * COUNT)
        result, base = found[2 * COUNT :].clone(), everything.view(torch.int32)[:COUNT].clone()
        del everything, found
    edges = (slice(None, EDGE), slice(-EDGE, None))
    assert all(torch.equal(result[edge], base[edge]) for edge in edges) == alike
    return result


def test_several_threads_mix_what_one_does() -> None:
    assert torch.equal(_mixed(1), _mixed(3))


@pytest.mark.parametrize("alike", [False, True])
def test_what_is_mixed_straight_into_an_arena_is_what_would_be_copied_there(alike: bool) -> None:
    assert torch.equal(_mixed(2, alike=alike), _mixed(2, alike=alike, lent=True))


def test_nobody_else_maps_an_arena_writable() -> None:
    shape = (64, 64)
    arena = Arena(scattered([TensorSpec("float32", shape, contiguous_stride(shape), 4 * 64 * 64)], 2, 2))
    try:
        with pytest.raises(PermissionError):
            mmap.mmap(arena.memory.fd, arena.memory.size)
        arena.memory.view[0] = 1  # its maker's own mapping goes on
        with mmap.mmap(arena.memory.fd, arena.memory.size, prot=mmap.PROT_READ) as seen:
            assert seen[0] == 1
    finally:
        arena.close()
