"""Program counters as they were seen: over calls that were timed, in every group, and over calls watched afterwards.

Whoever knows when the timing is over could call a library until then and be honest while it is watched. So the
timed calls themselves are sampled, all runners alike, wherever the kernel's clock events are open: they cost a thousandth.
Where they are closed, or miss much of what the process does, windows that nobody can tell from timed ones are watched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from apps.kernels.jail import freeze as ice
from apps.kernels.judge import policy
from apps.kernels.judge.runner import Runner
from apps.kernels.judge.timing import Group
from apps.kernels.profile.sampling import (
    FINE_NS,
    PERIOD_NS,
    NoSampling,
    ProgramCounters,
    sampled_by_clock,
    sampled_by_stopping,
)

TIMED_PERIOD_NS = 4 * PERIOD_NS  # in full, where sampling may not be felt
MISSED_SHARE = 0.2  # of a process's processor time, from which on its samples don't tell what ran
MISSED_SECONDS = 0.03  # less than so many samples says nothing yet


Way = Callable[[int], AbstractContextManager[ProgramCounters]]
sampled_finely: Way = partial(sampled_by_clock, period_ns=FINE_NS, every_starter=True)


@dataclass
class Seen:
    """Sampled addresses over some windows, those of the thread that is called apart, and where objects are mapped."""

    work: str
    addresses: list[int] = field(default_factory=list)
    caller: list[int] = field(default_factory=list)
    objects: tuple[tuple[int, int, str], ...] = ()
    source: str = ""
    calls: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    period: float = 0.0  # seconds of processor time a sample, where the kernel's clock took them

    def add(self, counters: ProgramCounters, pid: int) -> None:
        """Take in what was sampled of a process; `pid` is its first thread's number too, which is the one that is called."""
        self.addresses += counters.addresses
        self.caller += counters.of_thread(pid)
        self.source, self.period = counters.source, counters.period

    @property
    def total(self) -> int:
        """How many of its samples say something: `kinds` of all of them."""
        return sum(self.kinds(self.addresses).values())

    def kinds(self, addresses: Iterable[int]) -> dict[str, int]:
        """Samples by kind of object, OpenMP's own apart: threads that wait there spin, for however long they must wait."""
        kinds, _ = policy.gather(addresses, self.objects, self.work)
        return {kind: count for kind, count in kinds.items() if kind != "openmp"}


@contextmanager
def timed_calls(group: Group, into: list[Seen], *, full: bool) -> Iterator[None]:
    """Sample every runner of a group while it is timed; what was seen of the candidate is added to `into`.

    Where clock events are closed, or miss much of what it does, windows like the timed ones, at secret places between them, are
    watched: by stopping it, or by finer events.
    """
    runner = group.runners["candidate"]
    pid = runner.jailed.pid
    by_clock, watched = Seen(runner.jailed.work_inside), Seen(runner.jailed.work_inside)
    calls, seconds, began = runner.calls, runner.seconds, ice.processor_time(pid)
    with ExitStack() as stack:
        counters: dict[str, ProgramCounters] = {}
        period = TIMED_PERIOD_NS if full else PERIOD_NS
        try:
            for name, one in group.runners.items():
                counters[name] = stack.enter_context(sampled_by_clock(one.jailed.pid, period))
        except NoSampling:
            stack.close()
            counters.clear()
        mine = counters.get("candidate")
        group.watch = partial(_watch, watched, sampled_finely if counters else sampled_by_stopping)
        group.between_rounds = partial(_between_rounds, group, counters, began)
        group.wants_watching = mine is None
        yield
    group.watch = group.between_rounds = None
    if mine is not None and not (group.wants_watching and watched.source):  # what misses much overrates the rest
        by_clock.add(mine, pid)
        by_clock.calls, by_clock.seconds = runner.calls - calls, runner.seconds - seconds
    for seen in (by_clock, watched):
        if seen.source:
            seen.objects = ice.mapped_objects(pid)
            into.append(seen)


def _between_rounds(group: Group, counters: Mapping[str, ProgramCounters], began: ice.ProcessorTime) -> None:
    """Make room for more samples, and see whether they miss what the candidate does."""
    for one in counters.values():
        one.take()
    if not group.wants_watching:
        used = ice.processor_time(group.runners["candidate"].jailed.pid).since(began)
        group.wants_watching = misses(counters["candidate"], used)


def misses(counters: ProgramCounters, used: ice.ProcessorTime) -> bool:
    """Whether much of what a process had of the processors while it was sampled lies in threads that were not."""
    return counters.seconds_missed(used) > max(MISSED_SECONDS, MISSED_SHARE * used.all)


def _watch(seen: Seen, way: Way, runner: Runner, order: list[int], timeout: float) -> None:
    pid = runner.jailed.pid
    had = ice.processor_time(pid)
    try:
        with way(pid) as counters:
            window = runner.call(order, keep=1, timeout=timeout)
    except NoSampling:
        return
    seen.add(counters, pid)
    seen.calls += len(order)
    seen.seconds += window.nanoseconds / 1e9
    seen.cpu_seconds += ice.processor_time(pid).since(had).all
