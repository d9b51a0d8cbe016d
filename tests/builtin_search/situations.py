"""Problems, hosts and versions for the search: exported graphs of small models, and profiles with one planted finding."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch

from apps.agents.builtin.plan import Plan
from apps.agents.builtin.search import Workshop
from apps.agents.words import Assignment, Attempt, History, Writing
from apps.kernels.evaluation import (
    Bottleneck,
    Evaluation,
    Metric,
    Policy,
    Profile,
    SpeedUp,
    Tier,
    Time,
    Timing,
    Verdict,
)
from apps.kernels.facts import ProblemFacts
from apps.kernels.machine import Bandwidth, Cache, Ceilings, HostReport
from tests.builtin.exporting import Wrapped, graph_of

MEASURED = (  # working set, then GB/s of read, write, copy, copy_nt, write_nt with two threads
    (32 << 10, 420, 235, 470, 60, 28),
    (1 << 20, 235, 229, 232, 110, 56),
    (16 << 20, 199, 200, 192, 112, 57),
    (64 << 20, 50, 46, 45, 80, 54),
    (256 << 20, 57, 29, 40, 77, 53),
)


def host() -> HostReport:
    """Two cores with vectors of 512 bits."""
    mixes = ("read", "write", "copy", "copy_nt", "write_nt")
    rows = [
        Bandwidth(mix, size, threads, rate / (3 - threads) ** 0.5)
        for size, *rates in MEASURED
        for threads in (1, 2)
        for mix, rate in zip(mixes, rates, strict=True)
    ]
    return HostReport(
        cpu_model="A processor of two cores",
        cores=2,
        vector_bits=512,
        memory_bytes=1 << 33,
        caches=(Cache(1, 32 << 10, 1), Cache(2, 1 << 20, 1), Cache(3, 32 << 20, 2)),
        devices=(),
        toolchains={},
        torch=None,
        ceilings=Ceilings({"fp32_1": 118.0, "fp32_all": 236.0, "fp64_all": 118.0}, tuple(rows), 0.5, 1.4),
        isolation=(),
        isolation_level="full",
        counters=False,
        counters_detail="no counters here",
    )


FUNCTIONS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "swish": (lambda x: x * torch.sigmoid(x), (1024, 4096)),
    "relu": (lambda x: torch.relu(x) + 1.0, (2048, 8192)),
    "softmax": (lambda x: torch.softmax(x, 1), (1024, 4096)),
    "total": (lambda x: torch.sum(x * x), (1024, 4096)),
    "rows": (lambda x: torch.sum(x * x, 1), (1024, 4096)),
    "largest": (lambda x: torch.amax(x, 1), (1024, 4096)),
    "variance": (lambda x: (x - x.mean(1, keepdim=True)) * torch.rsqrt(x.var(1, keepdim=True) + 1e-5), (256, 16384)),
    "rms": (lambda x: x / torch.sqrt(torch.mean(x**2, 1, keepdim=True) + 1e-5), (16, 64, 4096)),
    "sorted": (lambda x: torch.sort(x, 1)[0], (64, 64)),
    "windows": (lambda x: torch.nn.functional.max_pool2d(x, 3, 2, 1), (16, 32, 112, 112)),
    "running": (lambda x: torch.cumsum(x, 1), (512, 8192)),
}


@functools.cache
def facts(name: str) -> ProblemFacts:
    """The facts of one of these functions, from its exported graph."""
    function, shape = FUNCTIONS[name]
    # Sizes alone are wanted: nothing is computed on them.
    graph = graph_of(Wrapped(function), (torch.zeros(shape),))
    return ProblemFacts(inputs=graph.inputs, graph=graph, compulsory_bytes=33_554_432, operators={"aten.mul.Tensor": 2})


def assignment(name: str, **changes: Any) -> Assignment:
    """A run of one of these functions."""
    return Assignment(problem="class Model: ...", facts=facts(name), host=host(), **changes)


def evaluation(
    milliseconds: float, found: Mapping[str, float] | None = None, *, reference: float = 10.0, tier: Tier = Tier.QUICK
) -> Evaluation:
    """A correct, timed candidate; with what a profile found, where one was taken."""
    speedup = reference / milliseconds
    metrics = tuple(Metric(name, value, unit(name), "planted") for name, value in (found or {}).items())
    first = next(iter(metrics), None)
    return Evaluation(
        Verdict.CORRECT,
        Policy.LIBRARY,
        tier,
        timing=Timing(
            reference=Time(reference, (reference * 0.99, reference * 1.01)),
            candidate=Time(milliseconds, (milliseconds * 0.99, milliseconds * 1.01)),
            speedup=SpeedUp(speedup, (speedup * 0.99, speedup * 1.01)),
        ),
        profile=Profile(
            "software", metrics, bottleneck=Bottleneck("planted", first.name, first.value, 0.0, "It was planted.")
        )
        if first is not None
        else Profile(),
    )


def unit(name: str) -> str:
    """As the profile has it, near enough."""
    return "share" if "share" in name else "x" if name in ("scaling", "latency_chain_ratio", "streaming_gain") else "1"


def failed(verdict: Verdict = Verdict.BUILD_FAILED) -> Evaluation:
    """A candidate that came to nothing."""
    return Evaluation(verdict, Policy.LIBRARY, Tier.QUICK, detail="it did not work out")


def version(
    run: Assignment, number: int, plan: Plan, judged: Evaluation, *, advice: int | None = None, repair: int = 0
) -> Attempt:
    """A version of a plan, in the iteration of its number."""
    source = Workshop(run).source(plan.schedule)
    writing = Writing(source, "", "", plan.to_plain())
    return Attempt(number, number, 0, repair, number - 1 or None, "builtin", writing, advice, judged)


def after(run: Assignment, plan: Plan, found: Mapping[str, float], milliseconds: float = 5.0) -> History:
    """A run with one version, of this plan and with these findings."""
    judged = evaluation(milliseconds, found)
    return History(attempts=(version(run, 1, plan, judged),), reference=judged, best=1)


def quiet(text: str) -> None:
    """Nobody listens."""
