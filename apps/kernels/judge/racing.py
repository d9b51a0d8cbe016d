"""The timing stage: groups of fresh processes, and their rounds."""

from __future__ import annotations

import math
import secrets
import statistics as plain_statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from apps.kernels.evaluation import Timing
from apps.kernels.host.noise import keep_noise
from apps.kernels.judge import compiled, statistics
from apps.kernels.judge.bystanders import DISTURBED, Bystanders
from apps.kernels.judge.checking import set_other_weights
from apps.kernels.judge.errors import CandidateFailed, HostCannotJudge
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.observing import Observed
from apps.kernels.judge.oracle import PUBLIC_SEED
from apps.kernels.judge.race import FEWEST_PAIRS, GROUPS, Race
from apps.kernels.judge.runner import Options, Runner
from apps.kernels.judge.seen import Seen, timed_calls
from apps.kernels.judge.session import Session
from apps.kernels.judge.summary import summarise
from apps.kernels.judge.timing import SETTLING_ROUNDS, Group, Timer, block_size, refused, regions_of, spills, ways_of

_random = secrets.SystemRandom()
COMPILED_GROUPS = 3
RESIZED = 2  # times as many calls must go into a window for a group to be taken again
RETAKES = 4  # groups that others' work disturbed, taken again at most, in a judgement
LOOKS = (8, 12, 16, 22, 30)
WARM_SECONDS = 0.12
OTHER_WEIGHTS_GROUPS = (2, 5)
CHECKING_SECONDS = 0.6  # where checking a group's calls takes longer, further groups have one of each
EMPTY_WINDOWS = 15
AIM_SECONDS = 48.0  # of a full judgement, when its timing should be done
TRIES_SHARE = 0.4  # of what the checks took: what tries beyond the promise take afterwards
TRIES_SECONDS = 8.0  # that they take at most
LAST_RETAKE_SECONDS = 50.0  # of a full judgement, when no group is begun again any more


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
    session.contents.draw_all(session.timed)
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
                why = "others were busy" if found.retaken else "calls are shorter than they were when it was checked"
                again = f"process {done + 1} of {found.count} again: {why}"
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
        if _resize(session, found, group):
            return False
        a_group = (time.monotonic() - begun) * remaining
        late = time.monotonic() - session.started + a_group > LAST_RETAKE_SECONDS
        if session.full and group.others > DISTURBED and len(found.retaken) < RETAKES and not late:
            found.retaken.append(group.others)
            return False
        found.groups.append(group)
        for note in group.notes:
            found.note(note)
        found.aside = group.aside
        found.a_round = (checked - begun - spent - group.aside) / (group.rounds + SETTLING_ROUNDS)
        found.overhead = time.monotonic() - begun - group.rounds * found.a_round
        if session.full:
            found.count = found.groups_planned(_aim(session) - (time.monotonic() - session.started))
        if len(found.groups) >= found.count:
            then(group)
    return True


def _resize(session: Session, found: Race, group: Group) -> bool:
    """Whether the first group is taken again with more calls a window: where calls of the faster side turn out to be shorter
    than the candidate's were when it was checked, windows would be short, and waking threads a part of them.
    """
    if found.groups or found.resized:
        return False
    found.resized = True
    fastest = min(plain_statistics.median(times) for times in group.times.values() if times) / 1e6
    block = block_size(session, max(fastest - (found.empty_us or 0.0) / 1e6 / found.block, 1e-6))
    if block < RESIZED * found.block:
        return False
    found.block = block
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
        early = sum(_random.random() < wanted.whole / wanted.most for _ in range(2))  # of the first two as of any other
        timer.rounds(group, 2, early, checked)
        a_round = (time.monotonic() - started - group.aside) / (2 + SETTLING_ROUNDS)
        pairs = max(FEWEST_PAIRS, min(wanted.most, round(wanted.seconds / max(a_round, 1e-9))))
        timer.rounds(group, max(1, pairs - 2), max(0, wanted.whole - early), checked)
    else:
        for look in LOOKS:
            timer.rounds(group, look - group.rounds, 1, checked)
            if statistics.settled(group.log_ratios()):
                break
            if time.monotonic() - started > 20:
                break


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
            session.against_artefacts, session.against_renamed = runner.built, runner.news.renamed

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

    def other(name: str, role: str, source: str) -> None:
        try:
            start(name, role, source)
        except CandidateFailed as failure:
            raise refused(session, "fails in its runner", failure) from None

    starts: list[Callable[[], None]] = [lambda: start("candidate", "candidate", request.candidate)]
    if request.against:
        against = request.against
        return [*starts, lambda: other("reference", "candidate", against)]
    starts.append(lambda: other("reference", "reference", source))
    if session.full:
        starts.append(lambda: other("second reference", "reference", source))
    return starts


def empty_window(session: Session) -> float:
    """Microseconds a window takes with a model that does nothing: what can't be told from a call."""
    started = time.monotonic()
    runner = None
    try:
        runner = session.runner(Options(role="empty", warm_seconds=0.0))
        times = []
        for index in range(EMPTY_WINDOWS):
            session.contents.write(session.contents.new(), runner.arena, runner.place(index % 2))
            times.append(runner.call([index % 2], keep=0, timeout=30).nanoseconds / 1000)
    except CandidateFailed as failure:
        raise HostCannotJudge(f"a model that does nothing fails here: {failure.detail}") from None
    finally:
        if runner is not None:
            session.end(runner)
    session.spend("starting runners", started)
    return plain_statistics.median(times)
