"""Tries the judge on one candidate after another; the zygote, the problems' oracles and what was built are shared."""

from __future__ import annotations

import time
from dataclasses import dataclass

from apps.kernels.candidate import read_candidate
from apps.kernels.evaluation import Evaluation, EvaluationRequest, Verdict
from apps.kernels.jail import JailFailed, Zygote, ZygoteFailed
from apps.kernels.judge import HostCannotJudge, ProblemRefused, evaluate
from apps.kernels.judge.artefacts import Artefacts
from apps.kernels.judge.proving import prove
from apps.kernels.judge.session import Opened
from apps.kernels.machine import Bandwidth, Ceilings, HostReport
from apps.kernels.selftest.corpus import Entry
from apps.kernels.strength import TIMED, Strength

NOT_JUDGED = "it could not be judged here"
OPEN_SECONDS = 1800.0  # that a problem's oracle may stay open
OPEN_AT_ONCE = 8  # problems of one bench: each holds two processes with torch and some twenty descriptors


@dataclass(frozen=True)
class Tried:
    """What became of one candidate. `found` is None where this host could not judge it; `why` says what is not as expected.

    `at_first` says what was not as expected when it was tried beside others; the rest is then of a second time, alone.
    """

    kind: str
    candidate: str
    problem: str
    policy: str
    expected: tuple[str, ...]
    found: str | None
    reason: str
    rules: tuple[str, ...]
    as_expected: bool
    why: str
    seconds: float
    at_first: str = ""


class Bench:
    """What judging one candidate after another needs only once. Use as a context manager; for one thread."""

    def __init__(self, zygote: Zygote) -> None:
        self.zygote = zygote
        self._open: dict[str, Opened] = {}
        self._built: dict[str, Artefacts] = {}

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        for problem in list(self._open):
            self._forget(problem)

    def judge(self, entry: Entry) -> Evaluation:
        """The judge's verdict on a candidate. Raises `HostCannotJudge`, `ProblemRefused`."""
        request = _request(entry)
        if entry.by == "text":
            return evaluate(request, zygote=self.zygote)
        opened = self._opened(entry)
        try:
            proof = prove(
                request,
                zygote=self.zygote,
                opened=opened,
                built=self._built.get(entry.problem),
                strength=None if entry.examined else Strength(timed=TIMED[-1]),
                host=_host_of(entry.bandwidth),
            )
        except (HostCannotJudge, ProblemRefused):
            self._forget(entry.problem)
            raise
        if entry.honest:
            self._built.setdefault(entry.problem, proof.built)
        return proof.evaluation

    def tried(self, entry: Entry) -> Tried:
        """A candidate judged, and whether the verdict, its reason and what its text shows are what was expected."""
        started = time.monotonic()
        rules = tuple(rejection.rule for rejection in read_candidate(entry.source, entry.policy).rejections)
        try:
            evaluation = self.judge(entry)
        except (HostCannotJudge, ProblemRefused, JailFailed, ZygoteFailed) as failure:
            return _tried(entry, None, str(failure), rules, NOT_JUDGED, started)
        except Exception as failure:  # a fault of the judge's own is a finding too, and ends nobody else's
            return _tried(
                entry, None, f"{type(failure).__name__}: {failure}", rules, "the judge itself failed", started
            )
        why = differs(entry, evaluation, rules)
        return _tried(entry, evaluation.verdict, reason_of(evaluation), rules, why, started)

    def _opened(self, entry: Entry) -> Opened:
        """The problem, opened for all of its candidates: that is on no candidate's time. The one longest unused is closed."""
        opened = self._open.pop(entry.problem, None)
        if opened is None:
            while len(self._open) >= OPEN_AT_ONCE:
                self._forget(next(iter(self._open)))
            opened = Opened.of(self.zygote, entry.problem_source, OPEN_SECONDS)
        self._open[entry.problem] = opened
        return opened

    def _forget(self, problem: str) -> None:
        if problem in self._open:
            self._open.pop(problem).close()


def _request(entry: Entry) -> EvaluationRequest:
    return EvaluationRequest(
        entry.problem_source,
        entry.source,
        policy=entry.policy,
        tier=entry.tier,
        profile=False,
        deadline_seconds=entry.deadline,
    )


def reason_of(evaluation: Evaluation) -> str:
    """Why this verdict: the rule that was broken, or what the check found."""
    if evaluation.rejections:
        return f"{evaluation.rejections[0].rule}: {evaluation.rejections[0].detail}"
    return evaluation.detail


def differs(entry: Entry, evaluation: Evaluation, rules: tuple[str, ...]) -> str:
    """What is not as expected of a candidate; empty where all is."""
    if evaluation.verdict not in entry.expect:
        return f"the verdict should be {' or '.join(entry.expect)}"
    if entry.reason not in reason_of(evaluation):
        return f"the reason should say “{entry.reason}”"
    if entry.rule and entry.rule not in rules:
        return f"its text should break the rule “{entry.rule}”"
    if not entry.honest:
        return "" if evaluation.speedup is None else "it should get no speed-up"
    if rules:
        return f"its text should break no rule, not “{rules[0]}”"
    if not evaluation.correctness.passed == evaluation.correctness.trials > 0:
        return "it should pass every trial"
    words = {one.name: one.word for one in evaluation.robustness if not one.of_problem}
    wanted = {**dict.fromkeys(entry.specialised, "specialised"), **dict.fromkeys(entry.holds, "holds")}
    amiss = [f"{name}: {word}" for name, word in wanted.items() if words.get(name) != word]
    return f"it should be shown as {', '.join(amiss)}" if amiss else ""


def _tried(
    entry: Entry, verdict: Verdict | None, reason: str, rules: tuple[str, ...], why: str, started: float
) -> Tried:
    return Tried(
        kind=entry.kind,
        candidate=entry.name,
        problem=entry.problem,
        policy=entry.policy.value,
        expected=tuple(one.value for one in entry.expect),
        found=verdict.value if verdict else None,
        reason=reason,
        rules=tuple(dict.fromkeys(rules)),
        as_expected=not why,
        why=why,
        seconds=round(time.monotonic() - started, 2),
    )


def _host_of(gbytes_per_s: float | None) -> HostReport | None:
    """A machine of which nothing is known but the bandwidth it is said to reach."""
    if gbytes_per_s is None:
        return None
    return HostReport(
        cpu_model="",
        cores=1,
        vector_bits=0,
        memory_bytes=0,
        caches=(),
        devices=(),
        toolchains={},
        torch=None,
        ceilings=Ceilings(bandwidth=(Bandwidth("read", 1, 1, gbytes_per_s),)),
        isolation=(),
        isolation_level="",
        counters=False,
        counters_detail="",
    )
