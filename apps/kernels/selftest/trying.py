"""The whole corpus, on several threads at once, each with its own bench; the device is held meanwhile.

Candidates that are tried at once take the cores from one another, which no judgement in use has to bear. So what is not as
expected then is tried again alone, as candidates are judged, and both are told. A dishonest one must be as expected three
times in a row then: who gets through now and then does not get through here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace

from apps.kernels.host.processor import processor
from apps.kernels.jail import Zygote, isolation_level, refusal
from apps.kernels.judge.errors import HostCannotJudge
from apps.kernels.judge.lock import device_lock
from apps.kernels.selftest.bench import Bench, Tried
from apps.kernels.selftest.corpus import Entry

MOST_AT_ONCE = 4
TIMES_ALONE = 3
LOCK_SECONDS = 600.0
Watch = Callable[[int, Tried], None]


def try_all(
    corpus: Sequence[Entry],
    watch: Watch = lambda _done, _tried: None,
    waiting: Callable[[str], None] = lambda _holder: None,
) -> tuple[list[Tried], dict[str, str]]:
    """Every candidate's outcome in the corpus' order, and how this host isolates. `watch` is told each as it ends.

    Raises `HostCannotJudge` where this host can't judge at all, and `ZygoteFailed`.
    """
    found: dict[int, Tried] = {}
    with ExitStack() as stack:
        zygote = stack.enter_context(Zygote())
        if why := refusal(zygote.mode, allowed=False):
            raise HostCannotJudge(why)
        stack.enter_context(device_lock("cpu", timeout=LOCK_SECONDS, waiting=waiting))
        benches = _Benches(zygote)
        stack.callback(benches.close)
        pool = stack.enter_context(ThreadPoolExecutor(at_once()))
        stack.callback(lambda: pool.shutdown(wait=True, cancel_futures=True))
        # What waits for a deadline comes first: the others use the cores meanwhile. Then problem by problem.
        order = sorted(range(len(corpus)), key=lambda i: (corpus[i].deadline, corpus[i].problem))
        futures = {pool.submit(benches.tried, corpus[index]): index for index in order}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            watch(len(found), found[futures[future]])
        benches.close()
        for index, first in sorted(found.items()):
            if not first.as_expected and min(at_once(), len(corpus)) > 1:
                found[index] = _alone(benches, corpus[index], first)
                watch(len(found), found[index])
    return [found[index] for index in sorted(found)], {
        "torch": zygote.torch,
        "isolation": zygote.mode,
        "level": isolation_level(zygote.mode),
    }


def _alone(benches: _Benches, entry: Entry, first: Tried) -> Tried:
    """What becomes of it with nothing beside it; `at_first` of it says what was not as expected before."""
    seconds = first.seconds
    for _ in range(1 if entry.honest else TIMES_ALONE):
        tried = benches.tried(entry)
        seconds += tried.seconds
        if not tried.as_expected:
            break
    return replace(tried, at_first=first.why, seconds=seconds)


def at_once() -> int:
    """How many candidates are judged at once: one for each two cores, two at least where there are two."""
    cores = processor().cores
    return max(min(2, cores), min(MOST_AT_ONCE, cores // 2))


class _Benches:
    """One bench for each thread."""

    def __init__(self, zygote: Zygote) -> None:
        self.zygote = zygote
        self._mine = threading.local()
        self._all: list[Bench] = []

    def tried(self, entry: Entry) -> Tried:
        """Try one on the calling thread's bench; once more where the host, not the candidate, was at fault."""
        if not hasattr(self._mine, "bench"):
            self._mine.bench = Bench(self.zygote)
            self._all.append(self._mine.bench)
        bench: Bench = self._mine.bench
        tried = bench.tried(entry)
        return tried if tried.found is not None else bench.tried(entry)

    def close(self) -> None:
        """Close them all; they open again what they need."""
        for bench in self._all:
            bench.__exit__()
