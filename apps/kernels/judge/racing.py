"""The timing stage: groups of fresh processes, their rounds, and what follows from them."""

from __future__ import annotations

import math
import secrets
import statistics as plain_statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from apps.kernels.evaluation import Outcome, SpeedUp, Time, Timing
from apps.kernels.host.noise import keep_noise
from apps.kernels.judge import compiled, statistics
from apps.kernels.judge.bystanders import DISTURBED, Bystanders
from apps.kernels.judge.checking import set_other_weights
from apps.kernels.judge.errors import CandidateFailed, ProblemRefused
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.observing import Observed
from apps.kernels.judge.oracle import PUBLIC_SEED
from apps.kernels.judge.runner import Options, Runner
from apps.kernels.judge.seen import Seen, timed_calls
from apps.kernels.judge.session import Session
from apps.kernels.judge.timing import SETTLING_ROUNDS, Group, Timer, block_size, estimate, regions_of, spills, ways_of

GROUPS = 8
MOST_GROUPS = 16  # where processes differ by more than their pairs do
COMPILED_GROUPS = 3
PAIRS = 30  # of a group, and of the first one, which shows how many the others want
MOST_PAIRS = 120
FEWEST_PAIRS = 5
FEW_GROUPS = 3  # whose scatter says something
RETAKES = 4  # groups that others' work disturbed, taken again at most, in a judgement
LOOKS = (8, 12, 16, 22, 30)
WARM_SECONDS = 0.12
OTHER_WEIGHTS_GROUPS = (2, 5)
CHECKED_WHOLE = 2  # calls of a group that are compared in every element, and others of which pages are
CHECKED_PAGES = 2
CHECKING_SECONDS = 0.6  # where checking a group's calls takes longer, further groups have one of each
EMPTY_WINDOWS = 15
AIM_SECONDS = 48.0  # of a full judgement, when its timing should be done
TRIES_SHARE, TRIES_SECONDS = (
    0.4,
    8.0,
)  # what tries beyond the promise take afterwards: of what the checks took, and at most
LAST_RETAKE_SECONDS = 50.0  # of a full judgement, when no group is begun again any more


@dataclass
class Race:
    """The groups that were timed, and what an empty model's window takes."""

    groups: list[Group] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    empty_us: float | None = None
    block: int = 1
    checking: float = 0.0  # seconds that checking a group's calls takes
    aside: float = 0.0  # seconds of a group for windows that are stopped or watched
    checked: tuple[int, int] = (CHECKED_WHOLE, CHECKED_PAGES)  # calls of the next group: whole, and by pages
    count: int = GROUPS
    overhead: float = 0.0  # seconds that a group takes besides its rounds
    a_round: float = 0.0  # seconds
    coin: int = field(default_factory=lambda: secrets.randbelow(2))  # who is started first in the first group
    retaken: list[float] = field(default_factory=list)  # what others took of the CPUs while the dropped groups ran

    def note(self, text: str | None) -> None:
        """Something to say with the times, once."""
        self.notes += [text] if text and text not in self.notes else []

    @property
    def wide(self) -> bool:
        """Whether the groups so far scatter too much for a decision, and show no difference that is beyond doubt."""
        return statistics.wide([estimate(group) for group in self.groups])

    def groups_planned(self, left: float) -> int:
        """How many groups to share `left` seconds among, those done included: 8 to 16, by what one has taken so far."""
        done = len(self.groups)
        if not done or not self.wide:
            return max(GROUPS, done)
        pairs = sum(group.rounds for group in self.groups)
        plan = statistics.Plan(left, self.overhead, self.a_round, FEWEST_PAIRS, MOST_PAIRS)
        return plan.groups(done, pairs, GROUPS, MOST_GROUPS)

    def remaining(self, left: float, *, full: bool) -> int:
        """Groups to share `left` seconds among, the one that begins now included: one, where there is time for none."""
        return max(1, (self.groups_planned(left) if full else self.count) - len(self.groups))

    @property
    def most_pairs(self) -> int:
        """Pairs that the next group may want, by what the first one shows, or the scatter of three and more."""
        if not self.groups:
            return PAIRS
        if len(self.groups) >= FEW_GROUPS and self.wide:
            return MOST_PAIRS
        return max(PAIRS, min(MOST_PAIRS, math.ceil(statistics.pairs_wanted(_log_ratios(self.groups[0]), GROUPS))))


def race(
    session: Session,
    findings: Findings,
    call_seconds: float,
    noise: dict[str, float],
    watch: Callable[[Observed], None] = lambda _observed: None,
) -> None:
    """Time the candidate against the reference; raises `CandidateFailed`.

    When all is timed, `watch` gets the last group's candidate, warm and still frozen, for what remains to be seen.
    """
    found = Race(count=GROUPS if session.full else 1)
    session.contents.draw_all()
    timer = Timer(session)

    def then(last: Group) -> None:
        findings.timing = summarise(found, noise, full=session.full)
        _learn_noise(findings.timing, found)
        watch(Observed(session, last.runners["candidate"], found.block, swept=last.laid_once))

    try:
        found.empty_us = empty_window(session)
        found.block = block_size(session, max(call_seconds - found.empty_us / 1e6, 1e-6))
        while (done := len(found.groups)) < found.count:
            session.tell("time", f"process {done + 1} of {found.count}", done / found.count)
            if not _take(session, findings, found, timer, then):
                again = f"process {done + 1} of {found.count} again: others were busy"
                session.tell("time", again, done / found.count)
    finally:
        timer.close()


def _learn_noise(timing: Timing, found: Race) -> None:
    """A full judgement's own A/A is this host's noise for later ones, unless other programs had a part in it."""
    aa = timing.speedup.aa if timing.speedup else None
    if aa and timing.reference and all(group.others <= DISTURBED for group in found.groups):
        keep_noise(statistics.kind_of_call(timing.reference.median_ms / 1000), math.log(aa))


def _take(
    session: Session,
    findings: Findings,
    found: Race,
    timer: Timer,
    then: Callable[[Group], None],
) -> bool:
    """Time one group; whether it counts. `then` gets the last one while it is warm and frozen.

    A group counts or is taken again by what else ran on the CPUs meanwhile, never by what it measured.
    """
    begun = time.monotonic()
    index = len(found.groups)
    left = _aim(session) - (begun - session.started)
    remaining = found.remaining(left, full=session.full)
    with _group(session, findings, found, index) as group:
        # a second a group at least; more where starting processes has left more of the aim
        spent = time.monotonic() - begun
        each = left / remaining - spent - found.checking - found.aside
        whole, pages = found.checked
        _run(session, timer, group, Rounds(max(1.0, each), found.most_pairs, whole), findings.seen)
        checked = time.monotonic()
        timer.check(group, pages)
        found.checking = time.monotonic() - checked
        if found.checking > CHECKING_SECONDS and whole > 1:
            found.checked, found.checking = (1, 1), found.checking / 2
        a_group = (time.monotonic() - begun) * remaining
        late = time.monotonic() - session.started + a_group > LAST_RETAKE_SECONDS
        if session.full and group.others > DISTURBED and len(found.retaken) < RETAKES and not late:
            found.retaken.append(group.others)
            return False
        found.groups.append(group)
        found.aside = group.aside
        found.a_round = (checked - begun - spent - group.aside) / (group.rounds + SETTLING_ROUNDS)
        found.overhead = time.monotonic() - begun - group.rounds * found.a_round
        if session.full:
            found.count = found.groups_planned(_aim(session) - (time.monotonic() - session.started))
        if len(found.groups) >= found.count:
            then(group)
    return True


def _aim(session: Session) -> float:
    """Seconds into the judgement when its timing should be done, so that all of it takes a minute.

    Large inputs make the checks slow, and the tries that follow likewise: each is one more such check.
    """
    return AIM_SECONDS - min(TRIES_SECONDS, TRIES_SHARE * session.split.get("check", 0.0))


@dataclass(frozen=True)
class Rounds:
    """What a full judgement can give one group: seconds, pairs at most, and calls that are kept whole for checking."""

    seconds: float
    most: int
    whole: int


def _run(session: Session, timer: Timer, group: Group, wanted: Rounds, into: list[Seen]) -> None:
    """The rounds of one group."""
    started = time.monotonic()
    timer.settle(group)
    others = Bystanders(session.processes)
    with timed_calls(group, into, full=session.full):
        _timed(session, timer, group, wanted, started)
    group.others = others.share()
    session.spend("timing", started)


def _timed(session: Session, timer: Timer, group: Group, wanted: Rounds, started: float) -> None:
    checked = ("candidate", "reference") if session.request.against else ("candidate",)
    if session.full:
        timer.rounds(group, 2, 0, checked)
        a_round = (time.monotonic() - started - group.aside) / (2 + SETTLING_ROUNDS)
        pairs = max(FEWEST_PAIRS, min(wanted.most, round(wanted.seconds / max(a_round, 1e-9))))
        timer.rounds(group, max(1, pairs - 2), wanted.whole, checked)
    else:
        for look in LOOKS:
            timer.rounds(group, look - group.rounds, 1, checked)
            if statistics.settled(_log_ratios(group)):
                break
            if time.monotonic() - started > 20:
                break


def _log_ratios(group: Group) -> list[float]:
    return statistics.log_ratios(group.times["reference"], group.times["candidate"])


@contextmanager
def _group(session: Session, findings: Findings, found: Race, index: int) -> Iterator[Group]:
    """Fresh processes: candidate, reference, in full a second reference, in some torch.compile's."""
    started = time.monotonic()
    seed = PUBLIC_SEED
    altered = session.full and index in OTHER_WEIGHTS_GROUPS and bool(session.oracle.problem.state)
    if altered:
        seed = set_other_weights(session, findings.missing)
    timed = Options(
        "", regions=regions_of(found.block), ways=ways_of(found.block), warm_seconds=WARM_SECONDS, seed=seed
    )
    runners: dict[str, Runner] = {}
    large = spills(session)
    arena = session.timed_arena(timed, lent=large)

    def start(name: str, role: str, source: str) -> None:
        options = replace(timed, role=role, source=source)
        against = name == "reference" and bool(session.request.against)
        fresh = against and not session.against_artefacts.tar
        watched = name == "candidate" and (index >= GROUPS - 1 or not session.full)
        runners[name] = runner = session.runner(options, first=fresh or watched, arena=arena)
        runner.name = name
        if fresh:
            session.against_artefacts = runner.built

    try:
        starts = _starts(session, start)
        if session.full and index < COMPILED_GROUPS and not session.request.against:
            starts.append(lambda: found.note(compiled.start(session, runners, timed, arena)))
        # whoever starts first gets other pages of memory: each is first in every second group
        for begin in starts if (index + found.coin) % 2 else reversed(starts):
            begin()
        session.spend("starting runners", started)
        yield Group(runners, found.block, laid_once=large)
    finally:
        for runner in runners.values():
            session.end(runner)
        arena.close()
        if altered:
            session.oracle.set_state()


def _starts(session: Session, start: Callable[[str, str, str], None]) -> list[Callable[[], None]]:
    """What is to be started in each group, but for torch.compile's."""
    request, source = session.request, session.problem_source
    starts: list[Callable[[], None]] = [lambda: start("candidate", "candidate", request.candidate)]
    if request.against:
        against = request.against
        return [*starts, lambda: start("reference", "candidate", against)]
    starts.append(lambda: _reference(start, source, "reference"))
    if session.full:
        starts.append(lambda: _reference(start, source, "second reference"))
    return starts


def _reference(start: Callable[[str, str, str], None], source: str, name: str) -> None:
    try:
        start(name, "reference", source)
    except CandidateFailed as failure:
        raise ProblemRefused(f"the reference fails in its runner: {failure.detail}") from None


def empty_window(session: Session) -> float:
    """Microseconds a window takes with a model that does nothing: what can't be told from a call."""
    started = time.monotonic()
    runner = session.runner(Options(role="empty", warm_seconds=0.0))
    try:
        times = []
        for index in range(EMPTY_WINDOWS):
            session.contents.write(session.contents.new(), runner.arena, runner.place(index % 2))
            times.append(runner.call([index % 2], keep=0, timeout=30).nanoseconds / 1000)
    finally:
        session.end(runner)
    session.spend("starting runners", started)
    return plain_statistics.median(times)


# -- what follows ----------------------------------------------------------------------------------------------------


def summarise(found: Race, noise: dict[str, float], *, full: bool) -> Timing:
    """Times, speed-up and outcome from the groups."""
    groups = found.groups
    reference = _time(groups, "reference")
    candidate = _time(groups, "candidate")
    seconds = (candidate.median_ms if candidate else 0.0) / 1000
    margin = statistics.margin(noise, seconds)
    speedup = _speedup(groups, "reference", margin, full=full)
    outcome = None
    if full and speedup and speedup.decision_interval:
        low, high = (math.log(bound) for bound in speedup.decision_interval)
        outcome = Outcome(statistics.outcome((low, high), margin))
    with_compiled = [group for group in groups if "compiled" in group.times]
    return Timing(
        reference=reference,
        compiled_reference=_time(with_compiled, "compiled"),
        candidate=candidate,
        speedup=speedup,
        speedup_over_compiled=_speedup(with_compiled, "compiled", margin, full=full),
        outcome=outcome,
        window_us=round(found.empty_us, 1) if found.empty_us else None,
        notes=(*found.notes, *_notes(found)),
        samples=tuple(group.samples(index) for index, group in enumerate(groups)),
    )


def _time(groups: Sequence[Group], name: str) -> Time | None:
    medians = [statistics.median(group.times[name]) / 1000 for group in groups if group.times.get(name)]
    if not medians:
        return None
    every = [us / 1000 for group in groups for us in group.times.get(name, ())]
    middle = statistics.median(every)
    if len(medians) >= 3:
        low, high = statistics.interval_over_groups([math.log(m) for m in medians], statistics.SHOWN_LEVEL)
        low, high = math.exp(low), math.exp(high)
    else:
        low, high = statistics.interval_of_median(every, statistics.SHOWN_LEVEL)
    return Time(_digits(middle), (_digits(min(low, middle)), _digits(max(high, middle))))


def _speedup(groups: Sequence[Group], over: str, margin: float, *, full: bool) -> SpeedUp | None:
    if not groups or any(not group.times.get(over) for group in groups):
        return None
    estimates = [estimate(group, over) for group in groups]
    middle = plain_statistics.fmean(estimates)
    if len(estimates) >= 3:
        shown = statistics.interval_over_groups(estimates, statistics.SHOWN_LEVEL)
    else:
        ratios = [r for g in groups for r in statistics.log_ratios(g.times[over], g.times["candidate"])]
        shown = statistics.interval_of_median(ratios, statistics.SHOWN_LEVEL)
    decision = statistics.interval_over_groups(estimates, statistics.DECISION_LEVEL) if full else None
    twice = [g for g in groups if "second reference" in g.times and over == "reference"]
    aa = plain_statistics.fmean([estimate(g, "second reference", "reference") for g in twice]) if twice else None
    usable = decision is not None and all(map(math.isfinite, decision))
    return SpeedUp(
        median=_digits(math.exp(middle)),
        ci95=(_digits(math.exp(shown[0])), _digits(math.exp(shown[1]))),
        decision_interval=(_digits(math.exp(decision[0])), _digits(math.exp(decision[1])))
        if usable and decision
        else None,
        level=statistics.DECISION_LEVEL if full else None,
        margin=margin if full else None,
        aa=_digits(math.exp(aa)) if aa is not None else None,
    )


def _notes(found: Race) -> list[str]:
    notes = []
    references = [us for group in found.groups for us in group.times.get("reference", ())]
    if len(references) >= 8:
        deciles = plain_statistics.quantiles(references, n=10)
        if deciles[8] > 2 * deciles[4]:
            notes.append("the machine was busy: a tenth of the reference's calls took more than twice its median")
    notes += _notes_on_others(found)
    if found.block > 1:
        notes.append(f"{found.block} calls a window, each on its own inputs")
    candidates = [us for group in found.groups for us in group.times.get("candidate", ())]
    if candidates and found.empty_us and statistics.median(candidates) * found.block < 3 * found.empty_us:
        notes.append("a window holds little more than its own cost; the true ratio is further from 1 than shown")
    return notes


def _notes_on_others(found: Race) -> list[str]:
    notes = []
    if found.retaken:
        notes.append(
            f"{len(found.retaken)} groups of processes were dropped and taken again: other programs took up to "
            f"{max(found.retaken):.0%} of this machine's CPUs"
        )
    disturbed = [group.others for group in found.groups if group.others > DISTURBED]
    if disturbed:
        notes.append(
            f"other programs took up to {max(disturbed):.0%} of this machine's CPUs during {len(disturbed)} of "
            f"{len(found.groups)} groups; the intervals are the wider for it"
        )
    return notes


def _digits(value: float) -> float:
    return float(f"{value:.6g}")
