"""Program counters as they were seen: over calls that were timed, in every group, and over calls watched afterwards.

Whoever knows when the timing is over could call a library until then and be honest while it is watched. So the
timed calls themselves are sampled, all runners alike, wherever the kernel's clock events are open: they cost a thousandth.
Where they are closed, windows that nobody can tell from timed ones are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

from apps.kernels.jail import freeze as ice
from apps.kernels.judge import policy
from apps.kernels.judge.runner import Runner
from apps.kernels.judge.timing import Group
from apps.kernels.profile.sampling import PERIOD_NS, NoSampling, ProgramCounters, sampled_by_clock, sampled_by_stopping

TIMED_PERIOD_NS = 4 * PERIOD_NS  # in full, where sampling may not be felt


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
    period: float = PERIOD_NS / 1e9  # seconds of processor time a sample, where the kernel's clock took them

    def add(self, counters: ProgramCounters, pid: int) -> None:
        """Take in what was sampled of a process; `pid` is its first thread's number too, which is the one that is called."""
        self.addresses += counters.addresses
        self.caller += counters.of_thread(pid)
        self.source = counters.source

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

    Where clock events are closed, windows like the timed ones, at secret places between them, are watched by stopping it.
    """
    period = TIMED_PERIOD_NS if full else PERIOD_NS
    runner = group.runners["candidate"]
    pid = runner.jailed.pid
    seen = Seen(runner.jailed.work_inside, period=period / 1e9)
    calls, seconds = runner.calls, runner.seconds
    with ExitStack() as stack:
        try:
            taken = [stack.enter_context(sampled_by_clock(one.jailed.pid, period)) for one in group.runners.values()]
        except NoSampling:
            stack.close()
            taken = []
            group.watch = partial(_watch, seen)
        yield
    group.watch = None
    if taken:
        seen.add(taken[list(group.runners).index("candidate")], pid)
        seen.calls, seen.seconds = runner.calls - calls, runner.seconds - seconds
    if seen.source:
        seen.objects = ice.mapped_objects(pid)
        into.append(seen)


def _watch(seen: Seen, runner: Runner, order: list[int], timeout: float) -> None:
    pid = runner.jailed.pid
    had = _processor_seconds(pid)
    try:
        with sampled_by_stopping(pid) as counters:
            window = runner.call(order, keep=1, timeout=timeout)
    except NoSampling:
        return
    seen.add(counters, pid)
    seen.calls += len(order)
    seen.seconds += window.nanoseconds / 1e9
    seen.cpu_seconds += _processor_seconds(pid) - had


def _processor_seconds(pid: int) -> float:
    """Of all its threads while it stands still; finer than `freeze.cpu_seconds`, which counts in hundredths."""
    return sum(had.ran for had in ice.turns(pid).values()) / 1e9
