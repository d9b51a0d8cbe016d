"""A host's station played by the test: what the server sends it is kept, what it says is handed to `reports.take`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.hosts import jobs, outgoing, reports
from apps.hosts.dispatch import dispatch
from apps.hosts.models import Device, Host, Job, JobKind
from apps.kernels.evaluation import Evaluation, EvaluationRequest, Policy, Progress, Tier, Verdict
from apps.kernels.plain import Plain, to_plain
from apps.station.messages import Doing, Order, Report, ReportKind

STATION = "machine:1:aa"


@dataclass
class Station:
    """The station of host `here`."""

    identity: str = STATION
    orders: list[Order] = field(default_factory=list)
    cancelled: list[tuple[int, int]] = field(default_factory=list)
    introductions: int = 0
    nudged: list[int] = field(default_factory=list)
    reachable: bool = True
    since: datetime = field(default_factory=lambda: timezone.now() - timedelta(hours=1))

    def say(self, kind: ReportKind, order: Order | None = None, n: int = 0, **more: Any) -> bool:
        """Report something; about `order` if given."""
        about = {"device": order.device, "job": order.job, "attempt": order.attempt} if order else {}
        return reports.take(Report("here", self.identity, kind, n=n, **about, **more), self.since)

    def alive(self, *doing: Doing) -> bool:
        """Say what is being done."""
        return self.say(ReportKind.ALIVE, payload=to_plain(doing))


@pytest.fixture
def station(host: Host, monkeypatch: pytest.MonkeyPatch) -> Station:
    """A station that has introduced itself; what goes through the broker comes to it."""
    here = Station()
    Host.objects.filter(pk=host.pk).update(station=STATION)

    def order(name: str, what: Order) -> bool:
        if here.reachable:
            here.orders.append(what)
        return here.reachable

    def introduce(name: str) -> None:
        here.introductions += 1

    monkeypatch.setattr(outgoing, "order", order)
    monkeypatch.setattr(outgoing, "cancel", lambda name, job, attempt: here.cancelled.append((job, attempt)))
    monkeypatch.setattr(outgoing, "introduce", introduce)
    monkeypatch.setattr(outgoing, "nudge", here.nudged.append)
    return here


def request() -> Plain:
    """A request to evaluate."""
    return to_plain(EvaluationRequest("problem", "candidate", policy=Policy.LIBRARY, tier=Tier.QUICK))


def evaluation(verdict: Verdict = Verdict.CORRECT) -> Plain:
    """A result."""
    return to_plain(Evaluation(verdict, Policy.LIBRARY, Tier.QUICK))


def progress(stage: str) -> Plain:
    """A line of news."""
    return to_plain(Progress(stage, "at it", 0.5))


Submit = Callable[..., Job]


@pytest.fixture
def submit(device: Device) -> Submit:
    """Asks the device for an evaluation."""

    def ask(key: str = "one", **columns: Any) -> Job:
        given: dict[str, Any] = {"kind": JobKind.EVALUATE, "device": device, "request": request(), "origin": "run 1"}
        return jobs.submit(key=key, **{**given, **columns})

    return ask


Send = Callable[..., tuple[Job, Order]]


@pytest.fixture
def send(station: Station, device: Device, submit: Submit) -> Send:
    """Submits a job and has it sent."""

    def go(key: str = "one", **columns: Any) -> tuple[Job, Order]:
        job = submit(key, **columns)
        assert dispatch(device.pk) is not None
        return job, station.orders[-1]

    return go
