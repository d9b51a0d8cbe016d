"""What is asked of a host about one candidate, and everything it found out: the words of the judge.

These dataclasses are the keys of the command line's --json and of what a station reports. Each key is always there:
what was not reached is None or an empty tuple.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from apps.kernels.plain import Plain

SCHEMA = 1
WEAK, IMPRECISE, JUMPS = "weak problem", "precision not provable", "discontinuous"
OF_PROBLEM = (WEAK, IMPRECISE, JUMPS)  # rows of `Evaluation.robustness` about the problem
ALGEBRA = "needs less work than written"


class Language(StrEnum):
    """What a kernel is written in."""

    CPP = "cpp"
    CUDA = "cuda"
    TRITON = "triton"


class Policy(StrEnum):
    """What a candidate may call: its own kernels only, or the library's products and convolutions too."""

    KERNEL = "kernel"
    LIBRARY = "library"


class Tier(StrEnum):
    """How much is measured: `quick` stops as soon as it is settled, `full` gathers all statistics."""

    QUICK = "quick"
    FULL = "full"


class Verdict(StrEnum):
    """What the judge says of a candidate. `rejected` means that it cheats."""

    CORRECT = "correct"
    INCORRECT = "incorrect"
    BUILD_FAILED = "build_failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    REJECTED = "rejected"


class Outcome(StrEnum):
    """How a correct candidate's time stands to the reference's, by the full tier's one rule."""

    FASTER = "faster"
    SLOWER = "slower"
    WITHIN_NOISE = "within_noise"


@dataclass(frozen=True)
class EvaluationRequest:
    """One candidate to judge. `overrides` replaces module-level size constants of the problem by name.

    `against` is another candidate's source that takes the reference runner's place in the timing (last contenders of a
    run); correctness is always against the problem. `real_headers` builds `load_inline` code with Torch's own headers.
    """

    problem: str
    candidate: str
    language: Language = Language.CPP
    policy: Policy = Policy.KERNEL
    tier: Tier = Tier.FULL
    overrides: dict[str, int | float | bool | str] = field(default_factory=dict)
    profile: bool = True
    against: str | None = None
    real_headers: bool = False
    allow_weak_isolation: bool = False
    deadline_seconds: float = 600.0


@dataclass(frozen=True)
class Rejection:
    """One rule a candidate broke: the rule's name, where (line or process), what was seen and what to do instead."""

    rule: str
    where: str
    detail: str


@dataclass(frozen=True)
class Setup:
    """What the candidate does once, before any call: seconds, and bytes it keeps beyond the reference's parameters."""

    seconds: float | None = None
    bytes: int | None = None


@dataclass(frozen=True)
class Build:
    """Seconds in compilers and loaders, and what they said (trimmed to what matters)."""

    seconds: float | None = None
    log: str = ""


@dataclass(frozen=True)
class Trial:
    """One check of one output. `error` and `tolerance` are the largest ones, in units of the output's scale."""

    name: str
    seed: str
    shape: tuple[int, ...]
    dtype: str
    passed: bool
    error: float | None = None
    tolerance: float | None = None
    detail: str = ""


@dataclass(frozen=True)
class Correctness:
    """Over all trials: how many, how many passed, and the worst error beside its tolerance (relative to scale)."""

    trials: int = 0
    passed: int = 0
    max_error: float | None = None
    tolerance: float | None = None
    details: tuple[Trial, ...] = ()


@dataclass(frozen=True)
class Robustness:
    """Something beyond what is promised that was tried: `holds`, or the kernel is `specialised` (holds is False).

    `tried` is False where it could not be tried; `detail` then says why, and nothing is said of the kernel.

    Some rows speak of the problem, not of the kernel (`of_problem`): that its checks are weak, that they can't tell a lower
    precision, that some elements lie at a discontinuity. `holds` is False there too; nobody is to blame for it.
    """

    name: str
    holds: bool
    detail: str = ""
    tried: bool = True

    @property
    def of_problem(self) -> bool:
        """Whether it says something of the problem's own checks."""
        return self.name in OF_PROBLEM

    @property
    def specialised(self) -> bool:
        """Whether the kernel was seen not to hold."""
        return self.tried and not self.holds and not self.of_problem

    @property
    def word(self) -> str:
        """What is shown of it: holds, specialised or not tried."""
        return "holds" if self.holds else "specialised" if self.tried else "not tried"


@dataclass(frozen=True)
class Time:
    """Median milliseconds of one call with its 95% interval."""

    median_ms: float
    ci95_ms: tuple[float, float]


@dataclass(frozen=True)
class SpeedUp:
    """Reference time over candidate time. `decision_interval` at `level` decides the outcome against `margin`.

    `aa` is the ratio the two reference processes of the same judgement show against each other (1.0 when all is well).
    """

    median: float
    ci95: tuple[float, float]
    decision_interval: tuple[float, float] | None = None
    level: float | None = None
    margin: float | None = None
    aa: float | None = None


@dataclass(frozen=True)
class Samples:
    """Raw samples of one pair of processes, in microseconds, in the order of measuring."""

    process: int
    reference_us: tuple[float, ...] = ()
    candidate_us: tuple[float, ...] = ()
    compiled_us: tuple[float, ...] = ()
    second_reference_us: tuple[float, ...] = ()


@dataclass(frozen=True)
class Timing:
    """Times of reference, torch.compile and candidate, the speed-up over eager and over torch.compile, raw samples."""

    reference: Time | None = None
    compiled_reference: Time | None = None
    candidate: Time | None = None
    speedup: SpeedUp | None = None
    speedup_over_compiled: SpeedUp | None = None
    outcome: Outcome | None = None
    window_us: float | None = None
    notes: tuple[str, ...] = ()
    samples: tuple[Samples, ...] = ()


@dataclass(frozen=True)
class Metric:
    """One measured or derived figure. `source` says how it was had: timing, rusage, disassembly, perf, model ..."""

    name: str
    value: float
    unit: str
    source: str


@dataclass(frozen=True)
class RooflinePoint:
    """One kernel on the roofline: FLOP per byte and GFLOP/s, with its share of the roof above it (0 to 1)."""

    name: str
    intensity: float
    gflops: float
    gbytes_per_s: float
    share_of_roof: float | None = None


@dataclass(frozen=True)
class Roofline:
    """Peak GFLOP/s, the bandwidth roof for this read/write mix and working set in GB/s, and the points under them."""

    peak_gflops: float
    bandwidth_gbytes_per_s: float
    mix: str
    working_set_bytes: int
    points: tuple[RooflinePoint, ...] = ()


@dataclass(frozen=True)
class Bottleneck:
    """What holds the kernel back: a term of the field, the metric that shows it, its value and the threshold crossed."""

    name: str
    metric: str
    value: float
    threshold: float
    explanation: str


@dataclass(frozen=True)
class Unavailable:
    """Something that could not be measured here, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class HotLoop:
    """One innermost loop: symbol, share of samples if sampled, instruction mix by kind, and its disassembly."""

    symbol: str
    share: float | None
    mix: dict[str, int]
    assembly: str
    cycles_per_iteration: float | None = None


@dataclass(frozen=True)
class Profile:
    """`tier` names what was used: `none`, `software` (no hardware counters) or `pmu`."""

    tier: str = "none"
    metrics: tuple[Metric, ...] = ()
    roofline: Roofline | None = None
    bottleneck: Bottleneck | None = None
    hot_loops: tuple[HotLoop, ...] = ()
    symbols: tuple[tuple[str, float], ...] = ()
    remarks: tuple[str, ...] = ()
    unavailable: tuple[Unavailable, ...] = ()

    def metric(self, name: str) -> Metric | None:
        """The metric of that name, or None where this host could not measure it."""
        return next((metric for metric in self.metrics if metric.name == name), None)


@dataclass(frozen=True)
class Evaluation:
    """Everything a host found out about one candidate. `verdict` is None only while nothing is known yet."""

    verdict: Verdict
    policy: Policy
    tier: Tier
    detail: str = ""
    rejections: tuple[Rejection, ...] = ()
    library_calls: tuple[str, ...] = ()
    setup: Setup = field(default_factory=Setup)
    build: Build = field(default_factory=Build)
    correctness: Correctness = field(default_factory=Correctness)
    robustness: tuple[Robustness, ...] = ()
    timing: Timing = field(default_factory=Timing)
    profile: Profile = field(default_factory=Profile)
    isolation: dict[str, Plain] = field(default_factory=dict)
    environment: dict[str, Plain] = field(default_factory=dict)
    seconds: float = 0.0
    split: dict[str, float] = field(default_factory=dict)
    schema: int = SCHEMA

    @property
    def speedup(self) -> float | None:
        """Median speed-up over eager where the candidate is correct and was timed, else None."""
        if self.verdict is not Verdict.CORRECT or self.timing.speedup is None:
            return None
        return self.timing.speedup.median


@dataclass(frozen=True)
class Progress:
    """One line of news while a judgement runs: the stage, what is happening, and how far it is (0 to 1) if known."""

    stage: str
    message: str
    fraction: float | None = None
