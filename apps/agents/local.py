"""A device in this very process: for `manage.py optimize` and for benchmarks, with no broker and no station between.

The judge's work is done in jailed processes all the same; what is local is only who waits for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from apps.agents.ports import JudgingFailed, Say, Stopped
from apps.agents.words import Assignment, Orders
from apps.kernels.evaluation import Evaluation, EvaluationRequest, Progress, Tier
from apps.kernels.jail import JailFailed, Zygote, ZygoteFailed
from apps.kernels.judge.errors import HostCannotJudge, ProblemRefused
from apps.kernels.machine import HostReport

Observe = Callable[[Progress], None]


class Judge(Protocol):
    """`apps.kernels.judge.evaluate`. What `observe` raises must pass through it, the jailed processes taken down."""

    def __call__(
        self, request: EvaluationRequest, *, zygote: Zygote, host: HostReport, observe: Observe
    ) -> Evaluation: ...


class Interrupt:
    """Orders from the one person at the terminal: the first `ask` stops the run, the second ends it at once.

    Is a `Control`. `ask` may be called from a signal handler or another thread.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._at_once = threading.Event()

    def ask(self) -> None:
        """Stop, keeping the best and judging it in full; asked again, end at once."""
        if self._stop.is_set():
            self._at_once.set()
        self._stop.set()

    def read(self, point: str) -> Orders:
        """See `apps.agents.ports.Control`."""
        return Orders(end="Stopped." if self._stop.is_set() else None, at_once=self._at_once.is_set())

    def check(self, *, finishing: bool) -> None:
        """Raise `Stopped` where the work in hand is to be interrupted."""
        if self._at_once.is_set() or (self._stop.is_set() and not finishing):
            raise Stopped("Stopped.", at_once=self._at_once.is_set())


class WallClock:
    """Seconds of the wall, which go on while no process works on the run."""

    def now(self) -> float:
        """See `apps.agents.ports.Clock`."""
        return time.time()


class LocalEvaluator:
    """Judges on this machine's own CPU (`apps.agents.ports.Evaluator`). The zygote is shared and stays the caller's."""

    def __init__(
        self, assignment: Assignment, zygote: Zygote, *, interrupt: Interrupt | None = None, judge: Judge | None = None
    ) -> None:
        self._assignment = assignment
        self._zygote = zygote
        self._interrupt = interrupt or Interrupt()
        self._judge = judge or _the_judge()

    def evaluate(
        self,
        key: str,
        source: str,
        tier: Tier,
        *,
        profile: bool,
        say: Say,
        against: str | None = None,
        real_headers: bool = False,
        finishing: bool = False,
    ) -> Evaluation:
        """See `apps.agents.ports.Evaluator.evaluate`."""
        request = self._assignment.request(source, tier, profile=profile, against=against, real_headers=real_headers)

        def observe(progress: Progress) -> None:
            self._interrupt.check(finishing=finishing)
            say(news(progress) + "\n")

        try:
            self._interrupt.check(finishing=finishing)
            return self._judge(request, zygote=self._zygote, host=self._assignment.host, observe=observe)
        except (HostCannotJudge, ProblemRefused, ZygoteFailed, JailFailed, OSError) as problem:
            raise JudgingFailed(str(problem)) from problem


def news(progress: Progress) -> str:
    """One line for people of what a judgement is doing."""
    share = f" ({progress.fraction:.0%})" if progress.fraction is not None else ""
    return f"{progress.stage}: {progress.message}{share}" if progress.message else f"{progress.stage}{share}"


def _the_judge() -> Judge:
    from apps.kernels.judge import evaluate

    return evaluate
