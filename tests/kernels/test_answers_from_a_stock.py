"""Outputs that lay ready are told from memory that an allocator gives again, or gives new."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from apps.kernels.jail.resident import PAGE, changeable_code, resident_ranges
from apps.kernels.judge import stock
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.numbers import close_enough


def test_ranges_are_merged_and_taken_apart() -> None:
    known = stock.merged([(10, 20), (0, 5), (5, 8), (15, 30), (40, 50)])
    assert known == [(0, 8), (10, 30), (40, 50)]
    assert stock.without((0, 60), known) == [(8, 10), (30, 40), (50, 60)]
    assert stock.without((12, 28), known) == [] and stock.without((30, 40), known) == [(30, 40)]
    assert stock.without((25, 45), known) == [(30, 40)] and stock.without((100, 110), known) == [(100, 110)]
    assert stock.overlap((25, 45), known) == 10 and stock.overlap((8, 10), known) == 0


def window(address: int, size: int = 1 << 20) -> Any:
    return SimpleNamespace(own=[SimpleNamespace(address=address, end=address + size, spec=SimpleNamespace(bytes=size))])


def windows(monkeypatch: pytest.MonkeyPatch, resident: list[tuple[int, int]], addresses: list[int]) -> stock.Stock:
    monkeypatch.setattr(stock, "resident_ranges", lambda _pid: resident)
    found = stock.Stock(1)
    for address in addresses:
        found.look(window(address))
    return found


def test_other_memory_each_time_that_was_there_before_is_a_stock(monkeypatch: pytest.MonkeyPatch) -> None:
    each_time = [n << 20 for n in range(1, 40)]
    with pytest.raises(CandidateFailed, match="filled before the call") as caught:
        windows(monkeypatch, [(0, 1 << 40)], each_time)
    assert caught.value.rule == stock.RULE
    windows(monkeypatch, [], each_time)  # new pages each time: whoever leaks them has not filled them
    windows(monkeypatch, [(0, 1 << 40)], [(n % stock.TURNS) << 20 for n in range(1, 60)])  # the same ones in turn


PROGRAM = """
import mmap, sys
kept = mmap.mmap(-1, 64 * 4096)
kept[: 8 * 4096] = b"x" * (8 * 4096)
import ctypes
print(ctypes.addressof(ctypes.c_char.from_buffer(kept)), flush=True)
if len(sys.argv) > 1:
    code = open(sys.argv[1], "r+b")
    read = open(sys.argv[1], "rb")
    run = mmap.mmap(read.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
    if sys.argv[2] == "closed":
        code.close()
    print("mapped", flush=True)
sys.stdin.read()
"""


def test_pages_that_were_touched_are_there() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdin
        start = int(process.stdout.readline())
        found = stock.merged(resident_ranges(process.pid))
        process.stdin.close()
    if not found:
        pytest.skip("this host does not say which pages are there")
    assert stock.overlap((start, start + 8 * PAGE), found) == 8 * PAGE
    assert stock.overlap((start + 8 * PAGE, start + 64 * PAGE), found) == 0


@pytest.mark.parametrize("how", ["open", "closed"])
def test_who_could_still_write_the_code_it_runs_is_seen(tmp_path: Path, how: str) -> None:
    file = tmp_path / "code.so"
    file.write_bytes(b"\x90" * PAGE)
    program = [sys.executable, "-c", PROGRAM, str(file), how]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdin
        process.stdout.readline()
        if process.stdout.readline() != b"mapped\n":
            pytest.skip("files here can't be run")
        found = changeable_code(process.pid)
        process.stdin.close()
    assert found == (os.fspath(file) if how == "open" and found else None) and (found or how == "closed")


def test_buffers_that_are_infinite_on_both_sides_agree() -> None:
    infinite, wrong = float("inf"), -float("inf")

    def packed(*numbers: float) -> bytes:
        return struct.pack(f"<{len(numbers)}f", *numbers)

    one = packed(infinite, 1.0, float("nan"))
    assert close_enough(one, one, "float32") and close_enough(one, packed(infinite, 1.00001, float("nan")), "float32")
    assert not close_enough(one, packed(wrong, 1.0, float("nan")), "float32")
    assert not close_enough(one, packed(infinite, 1.01, float("nan")), "float32")
    assert not close_enough(packed(1.0, 2.0), packed(infinite, 2.0), "float32")
