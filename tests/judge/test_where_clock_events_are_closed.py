"""Hosts where the kernel's clock events are closed, as on most users' Debian and Ubuntu: what ran is seen by stopping it."""

from __future__ import annotations

from dataclasses import replace
from typing import NoReturn

import pytest

from apps.kernels.jail import Zygote
from apps.kernels.judge import seen
from apps.kernels.profile import sampling
from apps.kernels.selftest.bench import Bench
from apps.kernels.selftest.corpus import Entry, entries

SHOWN = (
    "honest/house_style",
    "honest/pooling",
    "honest/threads_of_its_own",
    "honest/the_library_s_product_then_its_own",
    "fallback/behind_the_dispatcher",
    "fallback/a_busy_thread_beside_torch",
    "fallback/elementwise_behind_a_product",
)
TRIES = 3  # of a dishonest one: stopping is slow in some virtual machines, and gives few samples; who passes once is not safe


@pytest.mark.judge
@pytest.mark.parametrize("entry", entries(SHOWN), ids=lambda entry: entry.title)
def test_the_verdict_is_the_same(entry: Entry, zygote: Zygote, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object) -> NoReturn:
        raise sampling.NoSampling("perf_event_open: Operation not permitted")

    monkeypatch.setattr(sampling, "sampled_by_clock", closed)
    monkeypatch.setattr(seen, "sampled_by_clock", closed)
    if entry.problem == "swish" and not entry.honest:
        entry = replace(entry, problem="swish_large")  # so that a call is longer than what overheads may take there
    with Bench(zygote) as bench:
        tried = bench.tried(entry)
        for _ in range(0 if entry.honest else TRIES - 1):
            tried = tried if tried.as_expected else bench.tried(entry)
    assert tried.as_expected, f"{tried.why}, but it is {tried.found}: {tried.reason}"
