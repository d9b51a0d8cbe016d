"""What ran: program counters sampled from outside over calls like the timed ones, held against the policy."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from apps.kernels.evaluation import Rejection
from apps.kernels.jail import freeze as ice
from apps.kernels.judge import policy, products
from apps.kernels.judge.borrowed import borrowed
from apps.kernels.judge.findings import Findings
from apps.kernels.judge.observing import Observed
from apps.kernels.judge.process_state import judge_control_word
from apps.kernels.judge.racing import empty_window
from apps.kernels.judge.seen import Seen, Way, misses, sampled_finely
from apps.kernels.judge.session import Session
from apps.kernels.profile.sampling import NoSampling, sampled

SAMPLED_SECONDS = 0.15  # of windows in one go; a sample a millisecond and thread
PATIENCE_SECONDS, MOST_SECONDS = 4.0, 10.0  # for enough samples; for as many as something can be told by
ENOUGH_SAMPLES = 120
MOST_SECONDS_STOPPED = (
    25.0  # where stopping a process is slow, as in some virtual machines, samples come once in ten milliseconds
)
DOUBT_SECONDS, MORE_SAMPLES = 10.0, 4  # where those leave it open: so many times as many, or for so long
STOPPED_TIMES = 5.0  # as long may overheads seem to take where a process is stopped to look at it: that disturbs it
USUAL_WINDOW_US = 90.0  # of a model that does nothing, on a quiet machine


def judge_what_ran(session: Session, findings: Findings, observed: Observed) -> None:
    """Sample program counters over calls like those that were timed, and hold them against the policy.

    Raises `CandidateFailed` where they show what the policy doesn't allow.
    """
    judge_control_word(session, observed.runner)
    started = time.monotonic()
    session.tell("policy", "sampling what runs")
    sampling = _Sampling(observed)
    try:
        while not sampling.is_enough:
            sampling.more()
        session.spend("policy", started)
        learned = products.learn(session, products.allowed_calls(findings.products, session.request.policy))
        evidence = _beyond_doubt(session, findings, sampling, learned)
    except NoSampling as refused:
        findings.environment["program counters"] = f"not sampled: {refused}"
        return
    findings.environment["program counters"] = {
        "samples": evidence.samples,
        "objects": dict(sorted(evidence.objects.items(), key=lambda e: -e[1])[:8]),
        "calls": evidence.calls,
        "source": evidence.source,
        "enough": evidence.total >= policy.ENOUGH,
        "seconds": {"used": round(sampling.seen.cpu_seconds, 3), "missed": round(sampling.missed, 3)},
    }
    findings.reject([*_copies(observed.pid, sampling.seen, session.full), *_judged(session, evidence)])
    for seen in _by_way(findings.seen):
        findings.reject(_judged(session, _evidence(findings, seen, learned)))


def _judged(session: Session, evidence: policy.Evidence) -> list[Rejection]:
    """What the evidence shows; before it refuses anybody, how slow overheads are here at this very moment is measured."""
    found = policy.judge_evidence(evidence, session.request.policy)
    if not found:
        return []
    now = replace(evidence, slowness=max(evidence.slowness, _slowness(empty_window(session))))
    return policy.judge_evidence(now, session.request.policy)


def _slowness(window_us: float | None) -> float:
    return min(5.0, max(1.0, (window_us or 0.0) / USUAL_WINDOW_US))


def _enough(seen: Seen, patience: float) -> bool:
    """Whether there are samples enough after so many seconds: of all threads, and of the one that is called.

    Of that one fewer will do where it is seen to wait for others rather than to do a library's work.
    """
    mine = seen.kinds(seen.caller)
    foreign, total = mine.get("torch", 0) + mine.get("other", 0), sum(mine.values())
    hidden = total < policy.ENOUGH_OF_CALLER and (patience < PATIENCE_SECONDS or 3 * foreign > total)
    wanted = ENOUGH_SAMPLES if patience < PATIENCE_SECONDS else policy.ENOUGH
    return seen.total >= wanted and not hidden


class _Sampling:
    """What runs in windows like the timed ones, one go of them after the other, a busy machine's patience allowing."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        self._started = time.monotonic()
        self._way: Way = sampled
        self._begin()

    def _begin(self) -> None:
        runner = self.observed.runner
        self.seen = Seen(runner.jailed.work_inside)
        self._calls, self._seconds = runner.calls, runner.seconds
        self._had = ice.processor_time(self.observed.pid)
        self.missed = 0.0  # seconds of processor time of which no sample tells

    @property
    def elapsed(self) -> float:
        """Seconds that it has taken so far."""
        return time.monotonic() - self._started

    @property
    def is_enough(self) -> bool:
        """Whether there are samples enough, or no patience is left."""
        most = MOST_SECONDS if self.seen.period or not self.seen.source else MOST_SECONDS_STOPPED
        return _enough(self.seen, self.elapsed) or self.elapsed > min(most, self.observed.session.left / 2)

    def more(self) -> None:
        """One go of windows; where samples miss much of what it does, all is seen anew by finer ones. Raises `NoSampling`."""
        runner, pid = self.observed.runner, self.observed.pid
        until, had = runner.seconds + SAMPLED_SECONDS, ice.processor_time(pid)
        with self._way(pid) as counters:
            while runner.seconds < until:
                self.observed.window()
                counters.take()
        used = ice.processor_time(pid).since(had)
        if self._way is sampled and misses(counters, used):
            self._way = sampled_finely
            self._begin()
            return
        seen = self.seen
        seen.add(counters, pid)
        self.missed += max(0.0, counters.seconds_missed(used))
        seen.objects = ice.mapped_objects(pid)
        seen.calls, seen.seconds = runner.calls - self._calls, runner.seconds - self._seconds
        seen.cpu_seconds = ice.processor_time(pid).since(self._had).all


def _beyond_doubt(
    session: Session, findings: Findings, sampling: _Sampling, learned: products.Learned
) -> policy.Evidence:
    """What it shows; where a library seems to compute and too few samples say so, there are four times as many.

    They are looked at once, when all are there: who looks after each few has more chances to be wrong.
    """
    evidence = _evidence(findings, [sampling.seen], learned)
    if not policy.is_undecided(evidence):
        return evidence
    started, wanted = time.monotonic(), MORE_SAMPLES * evidence.total
    until = started + min(DOUBT_SECONDS, session.left / 4)
    with suppress(NoSampling):
        while time.monotonic() < until and sampling.seen.total < wanted:
            sampling.more()
    session.spend("policy", started)
    return _evidence(findings, [sampling.seen], learned)


def _by_way(seen: Sequence[Seen]) -> list[list[Seen]]:
    """Those that were sampled in the same way together."""
    ways = dict.fromkeys((one.source, one.period) for one in seen)
    return [[one for one in seen if (one.source, one.period) == way] for way in ways]


def _evidence(findings: Findings, seen: Sequence[Seen], learned: products.Learned) -> policy.Evidence:
    """What all of these show together: processes of the same candidate, sampled alike, whose objects lie elsewhere in each."""
    kinds, names, mine = Counter[str](), Counter[str](), Counter[str]()
    everywhere, of_caller = Counter[products.Page](), Counter[products.Page]()
    for one in seen:
        by_kind, by_name = policy.gather(one.addresses, one.objects, one.work)
        kinds.update(by_kind)
        names.update(by_name)
        mine.update(one.kinds(one.caller))
        everywhere += products.pages(one.addresses, one.objects, one.work)
        of_caller += products.pages(one.caller, one.objects, one.work)
    first = seen[0]
    cpu_seconds = sum(one.cpu_seconds for one in seen)
    calls = sum(one.calls for one in seen)
    a_sample = first.period or cpu_seconds / max(1, sum(kinds.values()))
    rate = calls / a_sample if a_sample else math.inf
    return policy.Evidence(
        dict(kinds),
        dict(names),
        calls,
        a_sample,
        first.source,
        slowness=_slowness(findings.timing.window_us) * (1.0 if first.period else STOPPED_TIMES),
        products=products.allowed(everywhere, learned, rate),
        seconds=sum(one.seconds for one in seen),
        caller=policy.Caller(
            sum(mine.values()), mine["torch"] + mine["other"] - products.allowed(of_caller, learned, rate)
        ),
    )


def _copies(pid: int, seen: Seen, always: bool) -> list[Rejection]:
    found = borrowed(pid, seen.addresses, seen.objects, seen.work, always=always)
    if found is None:
        return []
    own, library = found
    detail = f"{own} holds the code of {library}: a library's copy is the library, whatever it is called"
    return [Rejection("library computes", "the candidate's directory", detail)]
