"""What a schedule asks for is in the loops, and only where it means something. Nothing is compiled here."""

from __future__ import annotations

from collections.abc import Callable

import torch

from apps.agents.builtin.form import Load, Op, walk
from apps.agents.builtin.lowering import lower
from apps.agents.builtin.nest import Folds, Kernel, Par, Store, Vec, expressions_in, statements_in
from apps.agents.builtin.reading import read
from apps.agents.builtin.schedule import Schedule
from tests.builtin.exporting import Wrapped, graph_of

WIDE = Schedule(width=256, polynomials=True, accumulators=4, reciprocals=True)


def loops(function: Callable[..., torch.Tensor], shape: tuple[int, ...], schedule: Schedule) -> Kernel:
    return lower(read(graph_of(Wrapped(function), (torch.zeros(shape),))), schedule)


def passes(kernel: Kernel) -> list[Vec]:
    return [one for one in statements_in(*kernel.statements) if isinstance(one, Vec)]


def _rms(x: torch.Tensor) -> torch.Tensor:
    return x / torch.sqrt((x**2).mean(1, keepdim=True) + 1e-5)


def test_the_next_row_is_asked_for_only_where_a_row_is_worked_on_twice() -> None:
    ahead = WIDE.having(ahead=True)
    assert [bool(one.ahead) for one in passes(loops(lambda x: torch.softmax(x, 1), (64, 512), ahead))].count(True) == 1
    assert not any(one.ahead for one in passes(loops(lambda x: torch.tanh(x), (64, 512), ahead)))
    long_rows = loops(lambda x: torch.softmax(x, 1), (4, 1 << 20), ahead)
    assert not any(one.ahead for one in passes(long_rows))


def test_nothing_is_stored_past_a_cache_that_holds_it_all() -> None:
    def streamed(resident: int) -> bool:
        kernel = loops(lambda x: x * 2, (64, 512), WIDE.having(streaming=True, resident=resident))
        return any(isinstance(one, Store) and one.streaming for one in statements_in(*kernel.statements))

    assert streamed(64 * 512 * 4)
    assert not streamed(1 << 20)


def test_mean_and_variance_of_few_long_rows_come_of_one_pass() -> None:
    kernel = loops(lambda x: x.var(1) + x.mean(1), (2, 65536), WIDE.having(split=8, moments=True))
    reading = [
        one for one in kernel.statements if isinstance(one, Par)
        and any(isinstance(n, Load) and n.buffer in kernel.reads for n in walk(*expressions_in(one), folds=False))
    ]  # fmt: skip
    assert len(reading) == 1


def test_what_a_tile_alone_decides_is_computed_once_for_it() -> None:
    kernel = loops(_rms, (2, 16, 1000), WIDE)
    stores = [one for one in statements_in(*kernel.statements) if isinstance(one, Store)]
    roots = [one for one in stores if any(isinstance(n, Op) and n.name == "sqrt" for n in walk(one.value, folds=False))]
    assert [one.kept for one in roots] == [True]
    assert [one.buffer.name for one in stores if not one.kept] == ["out"]


def test_a_tile_is_kept_only_where_its_rows_would_push_each_other_out() -> None:
    def kept(width: int) -> int:
        kernel = loops(_rms, (2, 64, width), WIDE.having(keep=True))
        return sum(len(one.keeps) for one in statements_in(*kernel.statements) if isinstance(one, Folds))

    assert kept(4096) == 2
    assert kept(1000) == 1
