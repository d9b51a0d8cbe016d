"""The judge's side of a runner: start it, watch it through its build, call it, and have it stand still in between.

A runner is frozen whenever it is not inside a window: late work can't finish, early work can't start, and idle threads
don't disturb the other side.
"""

from __future__ import annotations

import collections
import os
import signal
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from apps.kernels.host.processor import processor
from apps.kernels.jail import ChannelBroken, ChannelForged, ChannelTimeout, Jailed, Limits, Zygote, compilers
from apps.kernels.jail import freeze as ice
from apps.kernels.jail.channel import BYTES, HEADER
from apps.kernels.jail.isolation import seccomp_filters
from apps.kernels.jail.mappings import mappings
from apps.kernels.jail.placing import awake_apart
from apps.kernels.jail.resident import changeable_code
from apps.kernels.judge.artefacts import Artefacts, collect
from apps.kernels.judge.errors import CandidateFailed
from apps.kernels.judge.memory import (
    ARENA,
    Arena,
    Place,
    Places,
    SharedMemory,
    TensorSpec,
    file_name,
    flush,
    freed_on_failure,
    scattered,
)
from apps.kernels.judge.news import News
from apps.kernels.judge.oracle import PUBLIC_SEED, Oracle
from apps.kernels.judge.outputs import Outputs
from apps.kernels.judge.reports import death, failed_build, failed_call, forged
from apps.kernels.judge.stock import Stock
from apps.kernels.judge.their_memory import TheirMemory
from apps.kernels.judge.windows import Output, Window
from apps.kernels.plain import Plain

POISON_BYTE = 0x7F  # 3.4e38 as float32: no tolerance takes it for an answer
PERTURB = POISON_BYTE ^ 0xFF  # glibc fills new memory with the complement
BUILD_SECONDS = 240.0
AHEAD = "looks ahead"  # the rule of whoever reads inputs of calls that have not been made
LATE_NS = 250_000  # after an answer until the called thread stands still; usually a fifth of that
SECOND_ANSWER_SECONDS = 1.0  # that the rest of a window may take where something spoke before its end


@dataclass(frozen=True)
class Options:
    """How a runner is started."""

    role: str  # reference, compiled, candidate or empty
    source: str = ""
    regions: int = 2  # sets of inputs that lie in its arena at a time
    ways: int = 0  # in which a set may lie in its region, by chance; 0: as near to the region's ends as may be
    warm_seconds: float = 0.3
    threads: int = 0
    perturb: int = 0
    observe: bool = False
    private: bool = False
    guard: bool = False  # pages that can't be touched around every tensor; slow, so for checking only
    askew: bool = False  # inputs start where torch's allocator would not put them
    seed: int = PUBLIC_SEED
    extra: Plain = None

    def places(self, inputs: Sequence[TensorSpec]) -> Places:
        """Where the inputs of whoever is started so may lie."""
        if self.ways:
            return scattered(inputs, self.regions, self.ways)
        return flush(inputs, self.regions, askew=self.askew)


@dataclass
class Pause:
    """A stop in the midst of a window: seconds after its beginning, and what is done meanwhile.

    `taken` is how many seconds after the beginning the called thread stood still; None where the window was over before.
    """

    seconds: float
    meanwhile: Callable[[], None]
    taken: float | None = None
    cpu: float = 0.0  # seconds of processor time that the called thread had had of the window by then
    lasted: float = 0.0  # seconds


class Runner:
    """A running model. Frozen between calls once `close_building` was called."""

    def __init__(
        self,
        zygote: Zygote,
        oracle: Oracle,
        options: Options,
        limits: Limits,
        built: Artefacts,
        arena: Arena | None = None,
    ) -> None:
        self.options = options
        self.problem = oracle.problem
        self.name = options.role
        lies_in = arena or Arena(options.places(self.problem.inputs))
        self._own = None if arena else lies_in
        self.places, self.arena = lies_in.places, lies_in.memory
        self._built = SharedMemory("built", len(built.tar)) if built.tar else SharedMemory("built", 0)
        if built.tar:
            self._built.view[: len(built.tar)] = built.tar
        self.news = News()
        self.alive: collections.deque[Window] = collections.deque()
        self.built = Artefacts()
        self.frozen = False
        self.calls, self.seconds = 0, 0.0  # of all its windows so far, counted or not
        self._turns: dict[int, ice.Turns] = {}  # what its threads had had of the processors when it was frozen
        self._worked: dict[int, int] = {}  # nanoseconds that each of them had since it was frozen the time before
        self._inputs: tuple[tuple[int, int], ...] = ()
        self._outputs = Outputs(self.problem)
        self._filters = 0
        files = (self.arena.fd, oracle.weights().fd, self._built.fd)
        entry = "apps.kernels.inside.runner:main"
        with freed_on_failure(self._built, *([self._own] if self._own else [])):
            self.jailed: Jailed = zygote.spawn(
                entry, self._payload(oracle), limits=limits, files=files, perturb=options.perturb
            )
        self.memory = TheirMemory(self.jailed.pid)
        self._stock: Stock | None = None

    def _payload(self, oracle: Oracle) -> Plain:
        problem, options = self.problem, self.options
        return {
            "role": options.role,
            "source": options.source,
            "init": problem.init,
            "inputs": problem.input_tree,
            "specs": [spec.plain() for spec in problem.inputs],
            "outputs": [spec.plain() for spec in problem.outputs],
            "output_tree": problem.output_tree,
            "state": [{"name": s.name, "dtype": s.dtype, "shape": list(s.shape), "at": s.at} for s in problem.state],
            "updated": list(problem.updated),
            "training": problem.training,
            "seed": options.seed,
            "threads": options.threads or processor().cores,
            "warm_seconds": options.warm_seconds,
            "placements": [[place.plain() for place in row] for row in self.places.rows],
            "firsts": list(self.places.firsts),
            "observe": options.observe,
            "private": options.private,
            "guard": options.guard,
            "compilers": compilers(),
            "extra": options.extra,
        }

    # -- building ----------------------------------------------------------------------------------------------------

    def build(self, timeout: float = BUILD_SECONDS) -> None:
        """Follow it through import, construction, state, prepare and warm-up. Raises `CandidateFailed`."""
        started = time.monotonic()
        last = "observed" if self.options.observe else "warm"
        stage = ""
        while stage != last:
            said = self._receive(timeout, "building")
            if "failed" in said:
                raise failed_build(said)
            stage = str(said.get("stage"))
            self.news.take(stage, said, time.monotonic() - started, self.jailed.pid)
            if stage in ("imported", "prepared"):
                started = time.monotonic()
            if stage == "warm" and self.options.role == "candidate":
                self.news.check_nesting(self.problem)

    def close_building(self, *, keep_artefacts: bool = False) -> None:
        """End the build phase: no exec, no fork from here on; verified from outside, then frozen."""
        if keep_artefacts:
            self.built = collect(self.jailed)
        filters = max(seccomp_filters(self.jailed.pid) or (0,))
        self._ask({"do": "close"}, 30.0, "closing its build phase")
        if self.jailed.end_build():
            raise CandidateFailed("rejected", "a process it started outlives the build phase", "child process")
        mapped = mappings(self.jailed.pid)
        self._inputs = tuple((one.start, one.end) for one in mapped if f"memfd:{file_name(ARENA)}" in one.path)
        self.refuse_more_mappings(sum(end - start for start, end in self._inputs))
        self.freeze()
        counts = seccomp_filters(self.jailed.pid)
        if counts and min(counts) < filters + 1:
            raise CandidateFailed("rejected", "the build phase could not be closed in every thread", "jail evaded")
        self._filters = min(counts) if counts else 0
        self._refuse_children()
        if changeable := changeable_code(self.jailed.pid):
            words = f"it could still write {changeable} when no more is to be written, a file that it runs code of"
            raise CandidateFailed("rejected", words, "jail evaded")

    def refuse_more_mappings(self, size: int) -> None:
        """Its inputs are mapped where the judge's own code in it has put them: `size` bytes must be no more than that."""
        if size > self.places.mapped_bytes:
            raise CandidateFailed("rejected", "it has mapped its inputs a second time, to read them unseen", AHEAD)

    def _refuse_children(self) -> None:
        if ice.children(self.jailed.pid):
            raise CandidateFailed("rejected", "a process it started outlives the build phase", "child process")

    def watch_outputs(self) -> None:
        """From now on outputs must not lie in a stock that was made before."""
        self._stock = Stock(self.jailed.pid)

    # -- calling -----------------------------------------------------------------------------------------------------

    def call(self, order: Sequence[int], *, keep: int = 1, timeout: float = 60.0, pause: Pause | None = None) -> Window:
        """One window: thaw, call the model once for each placement named, freeze. Raises `CandidateFailed`.

        `keep` earlier windows' outputs stay alive in the runner, to see that later calls leave them alone.
        """
        self.check_still()
        before = self._caller_nanoseconds()
        body = struct.pack(f"<{len(order) + 1}H", keep, *order)
        frame = HEADER.pack(len(body), BYTES) + body
        while len(self.alive) > keep:
            self.alive.popleft()
        channel, pid = self.jailed.channel, self.jailed.pid
        if self.jailed.has_spoken:
            raise forged("an answer to what it has not been asked yet")
        try:
            channel.socket.sendall(frame)
            with awake_apart(pid, self._worked):  # which takes time for each thread, and it stands still meanwhile
                started = time.perf_counter_ns()
                os.kill(pid, signal.SIGCONT)
            if pause is not None:
                self._pause(pause, started)
            answer = self.jailed.receive_bytes(timeout)
            ended = time.perf_counter_ns()
        except ChannelTimeout:
            self.jailed.kill()
            raise CandidateFailed("timed_out", "a call did not end in time") from None
        except ChannelForged as problem:
            raise failed_call(str(problem)) from None
        except (ChannelBroken, OSError):
            raise death(self.jailed, "in a call") from None
        still = self.freeze()
        # It went on after it had answered, whatever it did, by itself or in another thread: that is the call's time too.
        if still.called - ended > LATE_NS:
            ended = still.called
        if still.worked > LATE_NS:
            ended = max(ended, still.all)
        window = Window(ended - started, self._named(answer, len(order)), self._caller_nanoseconds() - before)
        self._outputs.check_storage(window, self.alive, self._inputs, self.memory)
        if self._stock:
            self._stock.look(window)
        self.alive.append(window)
        self.calls += len(order)
        self.seconds += window.nanoseconds / 1e9 - (pause.lasted if pause else 0.0)
        return window

    def _pause(self, pause: Pause, woken: int) -> None:
        """Stop it in the midst of a window, unless it has ended by then, and let it go on."""
        before = self._caller_nanoseconds()
        time.sleep(max(0.0, pause.seconds - (time.perf_counter_ns() - woken) / 1e9))
        taken = (self.freeze().called - woken) / 1e9
        if not self.jailed.has_spoken:
            pause.cpu = (self._caller_nanoseconds() - before) / 1e9
            pause.taken = taken
            pause.meanwhile()
        pause.lasted = (time.perf_counter_ns() - woken) / 1e9 - taken
        self.thaw()

    def _caller_nanoseconds(self) -> int:
        """Processor time of the thread that is called, when it was frozen last; 0 where the kernel doesn't count."""
        turns = self._turns.get(self.jailed.pid)
        return turns.ran if turns else 0

    def _named(self, answer: bytes, calls: int) -> list[list[Output]]:
        """The outputs of each call that an answer names."""
        entries = self._outputs.entries(answer)
        if not self._outputs.are_all(entries, calls) and self._speaks_again():
            raise forged("a second answer to one question")
        return self._outputs.of_each_call(entries, calls)

    def _speaks_again(self) -> bool:
        """Whether more comes though all was said: then what came was not the runner's own answer."""
        until = time.monotonic() + SECOND_ANSWER_SECONDS
        self.thaw()
        while not self.jailed.has_spoken and time.monotonic() < until:
            time.sleep(0.005)
        self.freeze()
        return self.jailed.has_spoken

    # -- standing still ----------------------------------------------------------------------------------------------

    def freeze(self) -> ice.Still:
        """Stop it in every thread; when it was seen to stand still."""
        try:
            still = ice.freeze(self.jailed.pid)
        except ice.NotFrozen:
            raise death(self.jailed, "") from None
        self.frozen = True
        before, self._turns = self._turns, ice.turns(self.jailed.pid)
        self._worked = {
            thread: had.ran - (before[thread].ran if thread in before else 0) for thread, had in self._turns.items()
        }
        return still

    def check_still(self) -> None:
        """It must not have run since it was frozen. Raises `CandidateFailed`."""
        if self.frozen and (moved := ice.since(self._turns, ice.turns(self.jailed.pid))):
            words = f"it ran while it should have stood still, between its calls ({moved})"
            raise CandidateFailed("rejected", words, "jail evaded")

    def thaw(self) -> None:
        """Let it run outside a window (while being profiled)."""
        ice.thaw(self.jailed.pid)
        self.frozen = False

    @property
    def buffers(self) -> dict[str, int]:
        """Where the buffers lie that the reference updates, as it said last; 0 where it has none of that name."""
        return self._outputs.buffers or self.news.buffers

    def process_changes(self) -> dict[str, Plain]:
        """What the model has changed for its whole process since it was loaded: name to value before and after."""
        self.thaw()
        said = self._ask({"do": "state"}, 10.0, "saying what it has set").get("changed")
        self.freeze()
        if not isinstance(said, dict):
            raise forged("what it has set for its process")
        return {str(name): value for name, value in said.items() if isinstance(value, list) and len(value) == 2}

    def check_alone(self) -> None:
        """Nothing may run beside it: no child process, the filters still in place in every thread; and it stands still."""
        self.check_still()
        self._refuse_children()
        counts = seccomp_filters(self.jailed.pid)
        if counts and min(counts) < self._filters:
            raise CandidateFailed("rejected", "a thread escaped the closed build phase", "jail evaded")

    def place(self, index: int) -> tuple[Place, ...]:
        """Where the inputs of a placement lie in the arena."""
        return self.places.rows[index]

    def close(self) -> None:
        """End it and free its memory."""
        self.jailed.close()
        if self._own:
            self._own.close()
        self._built.close()

    def _ask(self, message: Plain, timeout: float, what: str) -> dict[str, Plain]:
        try:
            self.jailed.send(message)
        except (ChannelBroken, OSError):
            raise death(self.jailed, what) from None
        return self._receive(timeout, what)

    def _receive(self, timeout: float, what: str) -> dict[str, Plain]:
        try:
            return self.jailed.receive(timeout)
        except ChannelTimeout:
            self.jailed.kill()
            raise CandidateFailed("timed_out", f"{what} took more than {timeout:.0f} s") from None
        except ChannelForged as problem:
            raise forged(str(problem)) from None
        except ChannelBroken:
            raise death(self.jailed, what) from None
