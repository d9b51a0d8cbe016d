"""What one judgement has open: the oracle, the comparer, the candidate's artefacts, and the limits they live under."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType

from apps.kernels.evaluation import EvaluationRequest, Progress, Tier
from apps.kernels.host.processor import available_memory, processor
from apps.kernels.inside.draw_names import AS_GIVEN
from apps.kernels.jail import Limits, Zygote
from apps.kernels.judge.artefacts import Artefacts
from apps.kernels.judge.comparer import Comparer
from apps.kernels.judge.content import Contents
from apps.kernels.judge.errors import HostCannotJudge, ProblemTooLarge
from apps.kernels.judge.memory import Arena, Sweep
from apps.kernels.judge.oracle import Oracle
from apps.kernels.judge.runner import Options, Runner

GIB = 1 << 30
BANK_SLOTS = 5  # one throw-away set, and four that calls are mixed from
LARGE_SLOTS = 4  # where a set is over 256 MB
SMALL_OUTPUT = 16 << 20  # bytes that one thread compares soon enough
TORCH_BYTES = 3 * GIB  # address space of a process that has imported torch and runs its threads
SHARE_OF_MEMORY = 0.6
# That a judgement holds at once: of inputs the bank, arenas and the roles' own; of outputs what is expected, raw copies, and
# two or three windows' in each of four runners; of weights each runner's and the oracle's, there in float64 too.
COPIES, COPIES_OF_STATE = 20, 10
MIXERS = 4  # threads that mix inputs, at most: a few take all that memory gives


@dataclass(frozen=True)
class Opened:
    """A problem, open to be judged: its oracle, the comparer, and what the inputs of calls are mixed from."""

    oracle: Oracle
    comparer: Comparer
    contents: Contents

    @classmethod
    def of(cls, zygote: Zygote, source: str, seconds: float, threads: int | None = None, layout: str = "") -> Opened:
        """Open a problem for `seconds` at most, its inputs stored as `layout` names. Raises `ProblemRefused`."""
        memory = available_memory()
        threads = threads or processor().cores
        limits = Limits.computing(int(memory * SHARE_OF_MEMORY) + TORCH_BYTES, seconds, threads)
        oracle = Oracle(zygote, source, limits, BANK_SLOTS, layout)
        problem = oracle.problem
        need = COPIES * max(problem.input_bytes, problem.output_bytes) + COPIES_OF_STATE * oracle.state_bytes
        if need > memory * SHARE_OF_MEMORY:
            oracle.close()
            sizes = (problem.input_bytes, problem.output_bytes, oracle.state_bytes, need, int(memory * SHARE_OF_MEMORY))
            took = "its inputs take {:.3g} GB, its outputs {:.3g}, its weights {:.3g}: judging them takes some {:.3g} GB, and "
            raise ProblemTooLarge(
                f"{took}this machine has {{:.3g}} for it. Choose smaller sizes".format(*(size / 1e9 for size in sizes))
            )
        at_once = threads if problem.output_bytes > SMALL_OUTPUT else 1
        try:
            comparer = Comparer(zygote, oracle, limits, at_once, min(MIXERS, threads))
        except BaseException:
            oracle.close()
            raise
        return cls(oracle, comparer, Contents(oracle, comparer, BANK_SLOTS))

    def close(self) -> None:
        """End its processes and free its memory."""
        self.comparer.close()
        self.oracle.close()


@dataclass
class Session:
    """Everything one judgement has open. Use as a context manager.

    `opened` is the problem where whoever asks has it open already, for several judgements one after the other.
    """

    request: EvaluationRequest
    problem_source: str
    zygote: Zygote
    observe: Callable[[Progress], None]
    threads: int = field(default_factory=lambda: processor().cores)
    trusted: bool = False  # the candidate is the reference itself, to see this host's noise: no policy, no floor
    split: dict[str, float] = field(default_factory=dict)
    artefacts: Artefacts = field(default_factory=Artefacts)
    against_artefacts: Artefacts = field(default_factory=Artefacts)
    compiled_artefacts: Artefacts = field(default_factory=Artefacts)
    started: float = field(default_factory=time.monotonic)
    opened: Opened | None = None
    alike: str = AS_GIVEN  # where the one element in sixteen is taken from that tells an answer kept from before
    renamed: dict[str, str] = field(default_factory=dict)  # parameters that the candidate has by other names
    against_renamed: dict[str, str] = field(default_factory=dict)  # and the version it is timed against
    timed: str = AS_GIVEN  # what timed calls' inputs are mixed with, beside those as given
    usually_finite: bool = True  # whether the reference's outputs are, on inputs as the problem gives them
    build_seconds: float = 240.0  # that a runner may take until it is warm
    call_seconds: float = 60.0  # and a single call
    _to_close: Opened | None = None
    _runners: list[Runner] = field(default_factory=list)
    _sweep: Sweep | None = None

    def __enter__(self) -> Session:
        opened = self.opened or Opened.of(self.zygote, self.problem_source, self.left, self.threads)
        self._to_close = None if self.opened else opened
        self.oracle, self.comparer, self.contents = opened.oracle, opened.comparer, opened.contents
        problem, state = self.oracle.problem, self.oracle.state_bytes
        need = 12 * (problem.input_bytes + problem.output_bytes + state)
        try:
            self.limits = Limits.computing(TORCH_BYTES + 4 * GIB + need, self.left, self.threads)
        except HostCannotJudge:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for runner in list(self._runners):
            self.end(runner)
        if self._sweep:
            self._sweep.close()
        if self._to_close:
            self._to_close.close()

    @property
    def full(self) -> bool:
        """Whether the full tier was asked for."""
        return self.request.tier is Tier.FULL

    @property
    def processes(self) -> tuple[int, ...]:
        """Ids of all processes that work for this judgement at the moment, but for the judge's own."""
        jailed = [self.oracle.jailed, self.comparer.jailed, *(runner.jailed for runner in self._runners)]
        return tuple(process.pid for process in jailed)

    @property
    def left(self) -> float:
        """Seconds until the deadline. Raises `HostCannotJudge` when it has passed."""
        left = self.request.deadline_seconds - (time.monotonic() - self.started)
        if left <= 0:
            raise HostCannotJudge(f"the judgement's deadline of {self.request.deadline_seconds:.0f} s has passed")
        return left

    def tell(self, stage: str, message: str, fraction: float | None = None) -> None:
        """News for whoever watches."""
        self.observe(Progress(stage, message, fraction))

    def spend(self, name: str, since: float) -> None:
        """Add the seconds since `since` (time.monotonic) to the split under `name`."""
        self.split[name] = self.split.get(name, 0.0) + time.monotonic() - since

    def runner(self, options: Options, *, first: bool = False, arena: Arena | None = None) -> Runner:
        """Start a runner and take it through its build; the first of a candidate leaves its artefacts here.

        Its inputs lie in `arena`, which others may read as well, or else in one of its own.
        """
        if options.role == "candidate":
            renamed = self.renamed if options.source == self.request.candidate else self.against_renamed
            extra = {"real_headers": self.request.real_headers, "renamed": renamed}
            options = replace(options, extra=extra)
        built = self._built_before(options)
        runner = Runner(self.zygote, self.oracle, options, replace(self.limits, wall_seconds=self.left), built, arena)
        self._runners.append(runner)
        try:
            for index in runner.places.firsts:
                base = self.oracle.slot(0)
                for spec, place, at in zip(self.oracle.problem.inputs, runner.place(index), base, strict=True):
                    runner.arena.view[place.at : place.at + spec.bytes] = self.oracle.bank.view[at : at + spec.bytes]
            runner.build(min(self.left, self.build_seconds))
            runner.close_building(keep_artefacts=first)
            if options.role == "candidate" and not options.guard and not self.trusted:
                runner.watch_outputs()  # where pages lie around tensors nothing is timed
        except BaseException:
            self.end(runner)
            raise
        return runner

    def timed_arena(self, options: Options, *, lent: bool) -> Arena:
        """Memory for the inputs of a timed group; where `lent`, the comparer's, which mixes into it without a copy."""
        places = options.places(self.oracle.problem.inputs)
        memory = self.comparer.lend(places.bytes) if lent and self.contents.mixing else None
        if memory:
            memory.clear()  # of what the group before was called on
        return Arena(places, memory)

    def sweep(self) -> None:
        """Fill the caches with what is nobody's."""
        self._sweep = self._sweep or Sweep(processor().caches)
        self._sweep()

    def _built_before(self, options: Options) -> Artefacts:
        if options.role == "compiled":
            return self.compiled_artefacts
        if options.role != "candidate":
            return Artefacts()
        return self.artefacts if options.source == self.request.candidate else self.against_artefacts

    def end(self, runner: Runner) -> None:
        """End a runner."""
        if runner in self._runners:
            self._runners.remove(runner)
        runner.close()
