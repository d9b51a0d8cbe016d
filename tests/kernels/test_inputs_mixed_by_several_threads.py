"""Several threads mix what one would, and what lies in an arena can't be written by whoever is given it."""

from __future__ import annotations

import mmap
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from apps.kernels.inside.comparer import PATTERN, ROWS_TO_SHARE, Mixers, mix
from apps.kernels.judge.memory import Arena, TensorSpec, contiguous_stride, scattered

COUNT = PATTERN * (ROWS_TO_SHARE + 1) + 17


def _mixed(threads: int) -> torch.Tensor:
    size = 4 * COUNT
    with mmap.mmap(-1, 3 * size) as bank, ThreadPoolExecutor(threads) as pool:
        everything = torch.frombuffer(bank, dtype=torch.float32, count=3 * COUNT)
        everything.copy_(torch.randn(3 * COUNT, generator=torch.Generator().manual_seed(1)))
        order = {"mix": [[[0], [size], [2 * size], 5, False]], "specs": [[size, "float32"]]}
        mix(bank, order, Mixers(pool, threads))
        result = everything.view(torch.int32)[2 * COUNT :].clone()
        del everything
    return result


def test_several_threads_mix_what_one_does() -> None:
    assert torch.equal(_mixed(1), _mixed(3))


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
