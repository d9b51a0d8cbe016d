"""Buffers that the reference updates: taken from a runner before and after its calls, held against the oracle's."""

from __future__ import annotations

import math
from collections.abc import Iterator

from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.memory import ITEM_BYTES
from apps.kernels.judge.numbers import close_enough
from apps.kernels.judge.oracle import Oracle, StateItem
from apps.kernels.judge.runner import Runner

Values = dict[str, bytes]


def values_in(oracle: Oracle, runner: Runner) -> Values:
    """What the updated buffers of a frozen runner hold, by name. Raises `CandidateFailed` where it has one not."""
    found = {}
    for item in _updated(oracle):
        if not (address := runner.buffers.get(item.name)):
            raise CandidateFailed("incorrect", f"it has no buffer {item.name}, which the reference updates")
        found[item.name] = runner.memory.read_at(address, _size(item))
    return found


def lay(oracle: Oracle, values: Values) -> dict[str, int] | None:
    """Put them where the oracle begins from and leaves what it makes of them: places by name, None where there are none."""
    places = {}
    for item in _updated(oracle):
        at = places[item.name] = oracle.state_bytes + item.at
        oracle.state.view[at : at + _size(item)] = values[item.name]
    return places or None


def that_differs(oracle: Oracle, values: Values) -> str | None:
    """The name of a buffer that is not what the oracle left, compared loosely: they are averages."""
    for item in _updated(oracle):
        at = oracle.state_bytes + item.at
        if not close_enough(values[item.name], bytes(oracle.state.view[at : at + _size(item)]), item.dtype):
            return item.name
    return None


def words(name: str) -> str:
    """What is wrong where one differs."""
    return f"buffer {name} is not updated as the reference updates it"


def _updated(oracle: Oracle) -> Iterator[StateItem]:
    return (item for item in oracle.problem.state if item.name in oracle.problem.updated)


def _size(item: StateItem) -> int:
    return math.prod(item.shape) * ITEM_BYTES[item.dtype]
