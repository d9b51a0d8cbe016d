"""Does it look ahead? Several calls make one window, and the inputs of all of them lie there when it begins.

A call may only use its own. Who takes the calls of a window together reads its weights once for all of them, or starts its
threads once. So some windows, secret and not counted, are stopped in their midst: the pages of inputs of calls that
can't have begun by then must not have been looked at.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from apps.kernels.jail.touched import Touched, forget, touched
from apps.kernels.judge.memory import ARENA, Place, file_name
from apps.kernels.judge.runner import Pause, Runner

ENOUGH = 2  # windows in which inputs were read too early: one may be the machine's luck
SURELY = 0.5  # of the fastest call so far: none takes less, by the clock and by the called thread's processor time
EARLY_CALLS = 2.0  # half of the stops fall into the time of the first two calls, where it is known best which one runs
LATEST = 0.6  # of a window; the other half fall anywhere before that

_random = secrets.SystemRandom()


@dataclass(frozen=True)
class Fastest:
    """The fastest call so far, as the mean of a window: seconds by the clock, and of the called thread's processor time."""

    seconds: float
    cpu: float


def look(runner: Runner, order: Sequence[int], fastest: Fastest, timeout: float) -> str | None:
    """One window with a stop in it. What was wrong, in words; empty where all was right; None where nothing could be told.

    The inputs must have been written already.
    """
    if len(order) < 2 or not forget(runner.jailed.pid):
        return None
    whole = len(order) * fastest.seconds
    early = min(EARLY_CALLS * fastest.seconds, whole)
    seen: list[Touched] = []

    def meanwhile() -> None:
        if _begun(pause, fastest, fastest.seconds, 1) >= len(order):
            return  # too late to tell anything, and looking takes long
        mapped = touched(runner.jailed.pid, file_name(ARENA))
        runner.refuse_more_mappings(sum(one.size for one in mapped))
        seen.extend(one for one in mapped if one.bytes)

    pause = Pause(_random.random() * (early if _random.random() < 0.5 else LATEST * whole), meanwhile)
    window = runner.call(order, keep=1, timeout=timeout, pause=pause)
    if pause.taken is None:
        return None
    begun = _begun(pause, fastest, (window.nanoseconds / 1e9 - pause.lasted) / len(order), window.cpu_nanoseconds)
    if begun >= len(order):
        return None
    ahead = [place for place in order[begun:] if any(_lies_in(tensor, seen) for tensor in runner.place(place))]
    if not ahead:
        return ""
    return (
        f"{pause.taken * 1e6:.0f} µs into a window of {len(order)} calls of {fastest.seconds * 1e6:.0f} µs and more it had "
        f"read the inputs of {len(ahead)} calls that had not been made yet: a call may use its own inputs only"
    )


def _lies_in(tensor: Place, seen: Sequence[Touched]) -> bool:
    """Whether some mapping that was looked at holds a part of its pages: whoever changes their protection divides them."""
    return any(one.offset < tensor.page + tensor.size and tensor.page < one.offset + one.size for one in seen)


def _begun(pause: Pause, fastest: Fastest, mean_seconds: float, cpu_nanoseconds: int) -> int:
    """How many calls can have begun by the time of the stop: the most that clock or processor time allow."""
    by_clock = (pause.taken or 0.0) / (SURELY * min(fastest.seconds, mean_seconds))
    by_cpu = pause.cpu / (SURELY * fastest.cpu) if fastest.cpu > 0 and cpu_nanoseconds else 0.0
    return int(max(by_clock, by_cpu)) + 1
