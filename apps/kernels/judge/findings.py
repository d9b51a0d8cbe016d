"""What a judgement has found out so far, and the evaluation it becomes when it ends, wherever it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field

from apps.kernels.evaluation import (
    Build,
    Evaluation,
    EvaluationRequest,
    Profile,
    Rejection,
    Robustness,
    Setup,
    Timing,
    Trial,
    Verdict,
)
from apps.kernels.jail import Zygote, compilers, isolation, isolation_level
from apps.kernels.judge.correctness import summarise
from apps.kernels.judge.errors import CandidateFailed, all_readable, readable
from apps.kernels.judge.seen import Seen
from apps.kernels.plain import Plain, to_plain
from apps.kernels.strength import Strength

LOG_KEPT = 20_000


@dataclass
class Findings:
    """Filled in as the judgement goes on."""

    request: EvaluationRequest
    started: float = field(default_factory=time.monotonic)
    build: Build = field(default_factory=Build)
    setup: Setup = field(default_factory=Setup)
    rejections: list[Rejection] = field(default_factory=list)
    library_calls: tuple[str, ...] = ()
    trials: list[Trial] = field(default_factory=list)
    robustness: list[Robustness] = field(default_factory=list)
    timing: Timing = field(default_factory=Timing)
    profile: Profile = field(default_factory=Profile)
    environment: dict[str, Plain] = field(default_factory=dict)
    split: dict[str, float] = field(default_factory=dict)
    mode: str = ""
    operators: dict[str, int] = field(default_factory=dict)  # what one call of the candidate was seen to dispatch
    allocated: int | None = None  # bytes of new tensors that it made
    seen: list[Seen] = field(default_factory=list)  # program counters of the calls that were timed, a group each
    products: tuple[Plain, ...] = ()  # the library's products and convolutions that it was seen to call
    strength: Strength = field(default_factory=Strength)  # of the problem's own checks
    missing: tuple[str, ...] = ()  # parameters that the candidate does not name as the reference does

    def reject(self, found: Iterable[Rejection]) -> None:
        """What breaks a rule ends the judgement. Raises `CandidateFailed` where there is any."""
        self.rejections += found
        if self.rejections:
            first = self.rejections[0]
            raise CandidateFailed("rejected", first.detail, first.rule, first.where)

    def evaluation(self, verdict: Verdict, detail: str = "") -> Evaluation:
        """Everything known, under this verdict. Only a correct candidate keeps its outcome."""
        correct = verdict is Verdict.CORRECT
        return Evaluation(
            verdict=verdict,
            policy=self.request.policy,
            tier=self.request.tier,
            detail=detail[:LOG_KEPT],
            rejections=tuple(Rejection(r.rule, readable(r.where), readable(r.detail)) for r in self.rejections),
            library_calls=tuple(readable(name) for name in self.library_calls),
            setup=self.setup,
            build=self.build,
            correctness=summarise(self.trials),
            robustness=(*self.strength.robustness(), *self.robustness),
            timing=self.timing if correct else Timing(),
            profile=self.profile if correct else Profile(),
            isolation=self._isolation(),
            environment=all_readable(self.environment),
            seconds=round(time.monotonic() - self.started, 3),
            split={name: round(seconds, 3) for name, seconds in self.split.items()},
        )

    def failed(self, failure: CandidateFailed) -> Evaluation:
        """The evaluation of a candidate that broke off. Whatever rejects it is named as a rule."""
        verdict = Verdict(failure.verdict)
        if verdict is Verdict.REJECTED and not self.rejections:
            self.rejections.append(Rejection(failure.rule, failure.where, failure.detail))
        return self.evaluation(verdict, failure.detail)

    def _isolation(self) -> dict[str, Plain]:
        if not self.mode:
            return {}
        rows = [to_plain(row) for row in isolation(self.mode)]
        return {"mode": self.mode, "level": isolation_level(self.mode).value, "enforced": rows}

    def describe_environment(self, zygote: Zygote, threads: int) -> None:
        """What the numbers were made with."""
        self.mode = zygote.mode
        self.environment.update(
            {
                "torch": zygote.torch,
                "threads": threads,
                "processors": os.cpu_count() or 1,
                "compilers": compilers(),
                "load_average": list(os.getloadavg()),
                "allocator": "glibc, nothing given back (M_MMAP_MAX=0, M_TRIM_THRESHOLD=-1), both sides alike",
            }
        )
