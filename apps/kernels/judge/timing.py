"""Is it faster? Frozen runners, called in turn by the judge's clock on inputs that change while they stand still."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from apps.kernels.evaluation import Samples
from apps.kernels.host.processor import processor
from apps.kernels.judge import ahead, buffers, compiled, statistics
from apps.kernels.judge.comparer import Copy
from apps.kernels.judge.content import Recipe
from apps.kernels.judge.errors import CandidateFailed, ProblemRefused
from apps.kernels.judge.memory import SharedMemory
from apps.kernels.judge.runner import AHEAD, POISON_BYTE, Runner
from apps.kernels.judge.session import Session
from apps.kernels.judge.windows import Sample, Window

Watch = Callable[[Runner, list[int], float], None]

_random = secrets.SystemRandom()
TARGET_SECONDS = 0.003  # a window shorter than this holds several calls, with up to USUAL_THREADS threads
USUAL_THREADS = 4
MOST_TIMES = 8  # as long at most: beyond 32 threads a judgement would take too long
LARGEST_BLOCK = 256
LARGEST_UPDATING_BLOCK = (
    16  # where calls update buffers: to check one, all before it in its window are answered as well
)
LARGEST_DRAWN_BLOCK = 8  # where each call's inputs are drawn anew, which takes longer than mixing
ARENA_BYTES = 256 << 20
SETTLING_ROUNDS = 2  # of each group, not counted
WAYS = 16  # in which a timed call's inputs may lie to its outputs, at least
PAGES_KEPT = 3
TRIES_TO_LOOK = 8  # a busy machine stops a process late
TRIES_WHERE_LATE = 2  # where so many in a row came too late: each takes as long as a round, and there are many
LOOKS_AHEAD, LOOKS_AT_ONCE = 6, 3  # windows of a group that are stopped in their midst, and of one go of rounds
WATCHED, WATCHED_IN_FULL = 16, 4  # windows of one go of rounds, where what runs is seen by stopping it
WATCHED_AT_ONCE = 2
POISON_WHOLE = 8 << 20  # larger outputs are poisoned on a secret share of windows only
POISONED_SHARE = 0.125  # of the rounds; in the others a few secret pages are, not those that are looked at afterwards
WHOLE_INSTEAD_OF_PAGES = 2  # as many calls are compared whole where pages of them can't be
CHECKING_SECONDS = 0.25  # of a group: who leaves out a call in thirty is caught by the number of those that are checked
LARGER_THAN_CACHES = 3  # times as large must inputs be to be laid once: what a sweep might miss is then a small part
CHECK_SLOT = 2  # raw memory: slots from here on hold copies for later checks


@dataclass
class Kept:
    """What is kept of one timed call for checking: everything (`copy`) or a few pages (`samples`).

    Where calls update buffers also what these held before its window and after it, and what all of its calls were made on.
    """

    recipe: Recipe
    copy: Copy | None = None
    samples: list[Sample] = field(default_factory=list)
    before: buffers.Values = field(default_factory=dict)
    after: buffers.Values = field(default_factory=dict)
    recipes: tuple[Recipe, ...] = ()
    call: int = 0  # which of them


@dataclass
class Group:
    """One set of fresh processes and their rounds: microseconds a call by runner's name, and what is to be checked."""

    runners: dict[str, Runner]
    block: int
    times: dict[str, list[float]] = field(default_factory=dict)
    kept: dict[str, list[Kept]] = field(default_factory=dict)
    least_cpu: dict[str, float] = field(default_factory=dict)  # seconds a call of the called thread's, the fewest
    looks: int = 0  # windows that were stopped in their midst so far
    aside: float = 0.0  # seconds of windows that are stopped or watched: as many in a group of few rounds as of many
    seen_ahead: list[str] = field(default_factory=list)  # whose they were in which inputs were read too early
    others: float = 0.0  # share of the machine's CPU time that other programs took meanwhile
    watch: Watch | None = None  # has a window called that is watched, not counted
    wants_watching: bool = False  # whether what runs is seen in such windows only
    between_rounds: Callable[[], None] | None = None  # whoever samples the runners makes room, and sees what is missed
    notes: list[str] = field(default_factory=list)  # what is to be said with the times
    laid_once: bool = False  # a window's inputs, for all runners: see `spills`

    @property
    def rounds(self) -> int:
        """Counted rounds so far."""
        return len(next(iter(self.times.values()), []))

    def log_ratios(self, over: str = "reference", under: str = "candidate") -> list[float]:
        """Of each round: how many times as long as `under` did `over` take, as a logarithm."""
        return statistics.log_ratios(self.times[over], self.times[under])

    def estimate(self, over: str = "reference", under: str = "candidate") -> float:
        """Their median: what this group says of the speed-up."""
        return statistics.median(self.log_ratios(over, under))

    def lose(self, name: str, why: str) -> None:
        """Go on without this runner, and without the times it had."""
        del self.runners[name]
        self.times.pop(name, None)
        self.kept.pop(name, None)
        self.notes.append(why)

    def samples(self, process: int) -> Samples:
        """Raw samples for the evaluation."""

        def of(name: str) -> tuple[float, ...]:
            return tuple(round(us, 3) for us in self.times.get(name, ()))

        return Samples(process, of("reference"), of("candidate"), of("compiled"), of("second reference"))


def target_seconds(threads: int) -> float:
    """How long a window should last. It opens with all threads frozen, and its first parallel region wakes them one by one.

    What that takes grows with their number and is no work of the kernel's; so the window grows with them, in proportion, and
    the share of it that waking takes stays what it is with four threads.
    """
    return TARGET_SECONDS * min(MOST_TIMES, max(1.0, threads / USUAL_THREADS))


def block_size(session: Session, call_seconds: float) -> int:
    """How many calls go into one window, so that it lasts milliseconds; each on its own inputs."""
    wanted = math.ceil(target_seconds(session.threads) / max(call_seconds, 1e-6))
    per_call = max(1, session.oracle.problem.input_bytes + session.oracle.problem.output_bytes)
    largest = LARGEST_BLOCK if session.contents.mixing else LARGEST_DRAWN_BLOCK
    if session.oracle.problem.updated:
        largest = min(largest, LARGEST_UPDATING_BLOCK)
    return max(1, min(wanted, largest, ARENA_BYTES // per_call))


def spills(session: Session) -> bool:
    """Whether the inputs of a call are far larger than all caches, whose last one serves every processor.

    They are then laid once for all who are called on them, and before each call the caches are swept: every call finds them
    alike, and the time that writing the inputs anew for each would take goes into more rounds. Where there are several last
    caches, and one who is called might find in another what the one before has left there, that is not done.
    """
    return 0 < LARGER_THAN_CACHES * cache_bytes_in_all() <= session.oracle.problem.input_bytes


def cache_bytes_in_all() -> int:
    """Bytes of all data caches of the processors in use; 0 where the kernel lists none, or several last ones."""
    here = processor()
    if not here.caches or here.caches[-1].shared_by < here.cores:
        return 0
    return sum(map(here.bytes_in_all, here.caches))


def regions_of(block: int) -> int:
    """Sets of inputs that lie in a timed runner's arena at a time: one more than a window of several calls takes."""
    return block + (1 if block > 1 else 0)


def ways_of(block: int) -> int:
    """Ways in which each of them may lie there: WAYS over all, one at least."""
    return math.ceil(WAYS / regions_of(block))


def refused(session: Session, what: str, failure: CandidateFailed) -> ProblemRefused:
    """What the candidate is timed against fails: that says nothing of the candidate."""
    whose = "the version it is timed against" if session.request.against else "the reference"
    return ProblemRefused(f"{whose} {what}: {failure.detail}")


class Timer:
    """Runs rounds. A round calls each runner once, in random order, on the same new content, alike in everything."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.poison = SharedMemory("poison", 1 << 20)
        self.poison.view[:] = bytes([POISON_BYTE]) * self.poison.size
        self._late: set[str] = set()  # names of runners that were stopped too late each time in the last look

    def close(self) -> None:
        """Free the timer's memory."""
        self.poison.close()

    def settle(self, group: Group) -> None:
        """Rounds that are not counted."""
        for _ in range(SETTLING_ROUNDS):
            self._round(group, counted=False, whole=frozenset())

    def rounds(self, group: Group, count: int, whole_checks: int, checked: Sequence[str] = ("candidate",)) -> None:
        """`count` counted rounds; of `whole_checks` of them, chosen in secret, everything is kept for checking."""
        if any(not self._pages_say_something(group.runners[name]) for name in checked):
            whole_checks *= WHOLE_INSTEAD_OF_PAGES
        whole = frozenset(_random.sample(range(count), min(count, whole_checks)))
        stopped = frozenset(_random.sample(range(count), min(count, self._looks_wanted(group))))
        watched = frozenset(_random.sample(range(count), min(count, self._watches_wanted(group))))
        for index in range(count):
            names = frozenset(checked) if index in whole else frozenset()
            self._round(group, counted=True, whole=names, checked=checked)
            begun = time.monotonic()
            if group.between_rounds:
                group.between_rounds()
            if index in stopped:
                self._look_ahead(group, checked)
            if group.watch and group.wants_watching and index in watched:
                self._watch(group, group.watch)
            group.aside += time.monotonic() - begun
            if self.session.left < 1:
                break

    def _round(
        self, group: Group, *, counted: bool, whole: frozenset[str], checked: Sequence[str] = ("candidate",)
    ) -> None:
        names = list(group.runners)
        _random.shuffle(names)
        recipes = [self.session.contents.new() for _ in range(group.block)]
        some = next(iter(group.runners.values()))
        order = some.places.draw(group.block)
        if group.laid_once:
            self._lay(some, recipes, order)
        else:
            self.session.contents.stage(recipes)
        keep = 2 if _random.random() < 0.2 else 1
        everything = self._small(some) or _random.random() < POISONED_SHARE  # says nothing of what will be compared
        poisoned, spots = ([_random.random() for _ in range(PAGES_KEPT)] for _ in range(2))
        for name in names:
            with self._answering_for(group, name):
                runner = group.runners[name]
                self._poison(runner, keep, None if everything else poisoned)
                if group.laid_once:
                    self.session.sweep()
                else:
                    self._write(runner, recipes, order)
                before = buffers.values_in(self.session.oracle, runner) if name in whole else {}
                window = runner.call(order, keep=keep, timeout=min(120.0, self.session.left))
                if counted:
                    group.times.setdefault(name, []).append(window.nanoseconds / 1000 / group.block)
                    seconds = window.cpu_nanoseconds / 1e9 / group.block
                    group.least_cpu[name] = min(seconds, group.least_cpu.get(name, seconds))
                chosen = _random.randrange(group.block)
                window.samples = self._take_samples(runner, window, chosen, spots)
                if name in checked and counted:
                    self._keep(group, name, window, recipes, chosen, before=before if name in whole else None)

    @contextmanager
    def _answering_for(self, group: Group, name: str) -> Iterator[None]:
        """Inside, something of the runner of that name happens: if it isn't the candidate's, the candidate is not to blame.

        Without torch.compile's the others go on.
        """
        try:
            yield
        except CandidateFailed as failure:
            if name == "candidate":
                raise
            if name != compiled.NAME:
                raise refused(self.session, "failed while it was timed", failure) from None
            self.session.end(group.runners[name])
            group.lose(name, compiled.failed(failure))

    def _looks_wanted(self, group: Group) -> int:
        return min(LOOKS_AT_ONCE, LOOKS_AHEAD - group.looks) if group.block > 1 else 0

    def _watches_wanted(self, group: Group) -> int:
        return (WATCHED_IN_FULL if self.session.full else WATCHED) // WATCHED_AT_ONCE if group.watch else 0

    def _watch(self, group: Group, watch: Watch) -> None:
        runner = group.runners["candidate"]
        for _ in range(WATCHED_AT_ONCE):
            watch(runner, self._prepared(group, runner), min(120.0, self.session.left))

    def _look_ahead(self, group: Group, checked: Sequence[str]) -> None:
        """Windows that are not counted, until one could be stopped in time to see whether calls use later ones' inputs."""
        group.looks += 1
        for name in checked:
            tries = TRIES_WHERE_LATE if name in self._late else TRIES_TO_LOOK
            self._late.discard(name)
            with self._answering_for(group, name):
                if not any(self._looked_ahead(group, name) for _ in range(tries)):
                    self._late.add(name)

    def _looked_ahead(self, group: Group, name: str) -> bool:
        runner = group.runners[name]
        order = self._prepared(group, runner)
        fastest = ahead.Fastest(min(group.times[name]) / 1e6, group.least_cpu[name])
        found = ahead.look(runner, order, fastest, min(120.0, self.session.left))
        group.seen_ahead += [name] if found else []
        if group.seen_ahead.count(name) >= ahead.ENOUGH:
            raise CandidateFailed("rejected", found or "", AHEAD)
        return found is not None

    def _prepared(self, group: Group, runner: Runner) -> list[int]:
        """New content for a window that is not counted; where it lies."""
        recipes = [self.session.contents.new() for _ in range(group.block)]
        order = runner.places.draw(group.block)
        self._lay(runner, recipes, order)
        if group.laid_once:
            self.session.sweep()
        return order

    def _pages_say_something(self, runner: Runner) -> bool:
        """Whether pages of its outputs can be held against the answer's: not in outputs with gaps, or transposed, nor where an
        answer begins from what earlier calls have left.
        """
        whole = all(output.spec.contiguous for outputs in runner.alive[-1].outputs for output in outputs)
        return whole and not runner.problem.updated

    def _small(self, runner: Runner) -> bool:
        return runner.problem.output_bytes <= POISON_WHOLE

    def _poison(self, runner: Runner, keep: int, spots: Sequence[float] | None) -> None:
        """Spoil the outputs that the next window gives back, or of each the pages at `spots`: new ones will lie there."""
        for window in list(runner.alive)[: max(0, len(runner.alive) - keep)]:
            runner.memory.poison(window, self.poison, spots)

    def _write(self, runner: Runner, recipes: Sequence[Recipe], order: Sequence[int]) -> None:
        for recipe, place in zip(recipes, order, strict=True):
            self.session.contents.write(recipe, runner.arena, runner.place(place))

    def _lay(self, runner: Runner, recipes: Sequence[Recipe], order: Sequence[int]) -> None:
        self.session.contents.lay(recipes, runner.arena, [runner.place(place) for place in order])

    def _take_samples(self, runner: Runner, window: Window, call: int, spots: Sequence[float]) -> list[Sample]:
        """A few pages of one call's outputs; read from every runner, so that caches are treated alike."""
        samples = []
        for index, output in enumerate(window.outputs[call]):
            for offset, size in output.pages(spots):
                samples.append(Sample(call, index, offset, runner.memory.read(output, offset, size)))
        return samples

    def _keep(
        self,
        group: Group,
        name: str,
        window: Window,
        recipes: Sequence[Recipe],
        call: int,
        *,
        before: buffers.Values | None,
    ) -> None:
        """Keep a call for checking: whole where it is said what the buffers held `before` its window."""
        kept = group.kept.setdefault(name, [])
        runner = group.runners[name]
        if before is not None:
            slot = CHECK_SLOT + sum(1 for entries in group.kept.values() for k in entries if k.copy is not None)
            copy = self.session.comparer.copy(slot, runner, window.outputs[call])
            after = buffers.values_in(self.session.oracle, runner)
            kept.append(Kept(recipes[call], copy, before=before, after=after, recipes=tuple(recipes), call=call))
        elif self._pages_say_something(runner):
            kept.append(Kept(recipes[call], samples=list(window.samples)))
        runner.check_alone()  # afterwards: it has stood still while it was read

    # -- checking what was timed -------------------------------------------------------------------------------------

    def check(self, group: Group, pages: int) -> int:
        """Compare every whole copy and secretly chosen page samples: those of `pages` contents at least, and of as many as a
        quarter of a second allows. Returns how many contents were checked.

        Raises `CandidateFailed` at the first that is wrong.
        """
        started = time.monotonic()
        by_content: dict[Recipe, list[tuple[str, Kept]]] = {}  # an answer serves all who were called on its inputs
        for name, entries in group.kept.items():
            for kept in entries:
                by_content.setdefault(kept.recipe, []).append((name, kept))
        whole = [recipe for recipe, entries in by_content.items() if any(kept.copy for _, kept in entries)]
        partial = [recipe for recipe in by_content if recipe not in whole]
        _random.shuffle(partial)
        checked = 0
        for recipe in whole + partial:
            if checked >= len(whole) + pages and time.monotonic() - started > CHECKING_SECONDS:
                break
            self._check(group, recipe, by_content[recipe])
            checked += 1
        group.kept.clear()
        self.session.spend("checking timed calls", started)
        return checked

    def _check(self, group: Group, recipe: Recipe, entries: Sequence[tuple[str, Kept]]) -> None:
        session = self.session
        if session.oracle.problem.updated:
            for name, kept in entries:
                with self._answering_for(group, name):
                    self._check_window(name, kept)
            return
        session.contents.ask(recipe)
        answer = session.oracle.answer()
        for name, kept in entries:
            copy = kept.copy or session.comparer.overlay(0, answer, kept.samples)
            how = session.contents.how(recipe)
            comparison = session.comparer.compare(copy, answer, how, overlaid=kept.copy is None)
            if comparison.near and not comparison.passed:
                with self._answering_for(group, name):
                    raise CandidateFailed("incorrect", f"{name}: a timed call gave a wrong answer: {comparison.detail}")

    def _check_window(self, name: str, kept: Kept) -> None:
        """Answer all calls of its window one after the other, from what the buffers held; then they must be as it left them."""
        session, oracle = self.session, self.session.oracle
        places = buffers.lay(oracle, kept.before)
        for index, recipe in enumerate(kept.recipes):
            session.contents.ask(recipe)
            answer = oracle.answer(buffers=places)  # which leaves what comes next begins from
            if index == kept.call and kept.copy:
                comparison = session.comparer.compare(kept.copy, answer)
                if comparison.near and not comparison.passed:
                    raise CandidateFailed("incorrect", f"{name}: a timed call gave a wrong answer: {comparison.detail}")
        if wrong := buffers.that_differs(oracle, kept.after):
            raise CandidateFailed("incorrect", f"{name}: while it was timed, {buffers.words(wrong)}")
