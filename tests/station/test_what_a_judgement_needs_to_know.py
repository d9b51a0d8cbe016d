"""A full judgement refuses what is faster than memory: where memory was never measured, the station measures it first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from apps.kernels.evaluation import Evaluation, EvaluationRequest, Tier, Verdict
from apps.kernels.host import report
from apps.kernels.machine import Bandwidth, Ceilings, HostReport
from apps.kernels.plain import to_plain
from apps.station import work
from apps.station.messages import Order

COPY = Ceilings(bandwidth=(Bandwidth("copy", 1 << 28, 2, 12.0),))


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[HostReport]:
    """The host's facts that each judgement was given. None of the machinery runs."""
    given: list[HostReport] = []

    def evaluate(request: EvaluationRequest, *, host: HostReport, **_rest: object) -> Evaluation:
        given.append(host)
        return Evaluation(Verdict.CORRECT, policy=request.policy, tier=request.tier)

    monkeypatch.setattr(work, "evaluate", evaluate)
    monkeypatch.setattr(work.Work, "_fresh_zygote", lambda self: None)
    return given


def order(tier: Tier) -> Order:
    request = to_plain(EvaluationRequest("problem", "candidate", tier=tier))
    return Order(job=1, attempt=1, kind=work.EVALUATE, device="cpu", request=request, deadline_seconds=5)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """How often this host was described, and whether that was to be quick: then nothing is known of its memory."""
    times: list[bool] = []

    def host_report(*, quick: bool = False, observe: object = None) -> HostReport:
        times.append(quick)
        return replace(report.host_report(quick=True), ceilings=Ceilings() if quick else COPY)

    monkeypatch.setattr(work, "host_report", host_report)
    return times


def test_memory_is_measured_before_a_full_judgement_and_once(asked: list[bool], judged: list[HostReport]) -> None:
    bench = work.Work()
    for tier in (Tier.QUICK, Tier.FULL, Tier.FULL):
        bench.do(order(tier), lambda _progress: None)
    assert asked == [True, False]
    assert [bool(host.ceilings.bandwidth) for host in judged] == [False, True, True]


def test_what_can_not_be_measured_is_tried_once(
    monkeypatch: pytest.MonkeyPatch, asked: list[bool], judged: list[HostReport]
) -> None:
    monkeypatch.setattr(f"{__name__}.COPY", Ceilings())
    bench = work.Work()
    for _ in range(3):
        bench.do(order(Tier.FULL), lambda _progress: None)
    assert asked == [True, False]
    assert len(judged) == 3
