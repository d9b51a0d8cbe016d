"""A run in this very process: no broker, no station, the same rows. For `manage.py optimize`.

The loop works in a thread of its own; whoever asked for it watches the rows and steers by them, as a page would.
"""

from __future__ import annotations

import re
import socket
import threading
import time

from django.db import transaction
from django.utils import timezone

from apps.agents.local import Interrupt, LocalEvaluator
from apps.agents.ports import Evaluator, Stopped
from apps.agents.words import Assignment
from apps.hosts import registry
from apps.hosts.models import Device, Host
from apps.kernels.evaluation import Language
from apps.kernels.facts import ProblemFacts
from apps.kernels.jail import Zygote
from apps.kernels.machine import HostReport
from apps.kernels.plain import to_plain
from apps.runs import claims, connections, launch, tasks
from apps.runs.beat import Hold
from apps.runs.claims import Claim
from apps.runs.control import stop_order
from apps.runs.launch import LaunchOrder
from apps.runs.models import Run, Sizing, SizingState
from apps.runs.refusals import LaunchRefused

_LOOK_EVERY = 0.25  # seconds between looks for an order to stop


def this_device(report: HostReport) -> Device:
    """This machine's CPU as a row. A host of that name that a station speaks for stays as online as it was."""
    name = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().lower()).strip("-")[:40] or "here"
    host, _ = Host.objects.get_or_create(name=name)
    registry.keep_report(host, report)
    return Device.objects.select_related("host").get(host=host, name="cpu")


def keep_facts(sizing: Sizing, facts: ProblemFacts) -> None:
    """What was found of the problem here. Raises `LaunchRefused` where it can't be judged."""
    state = SizingState.REFUSED if facts.refusal else SizingState.READY
    Sizing.objects.filter(pk=sizing.pk).update(
        state=state, facts=to_plain(facts), refusal=facts.refusal or "", checked_at=timezone.now(), job=None
    )
    sizing.refresh_from_db()
    if facts.refusal:
        raise LaunchRefused(f"This problem can't be judged here: {facts.refusal}", "problem")


def begin(order: LaunchOrder, sizing: Sizing, device: Device) -> tuple[Run, Claim]:
    """Create the run and claim it at once, so that no other worker takes it."""
    launch.check_order(order)
    launch.check_money(None, order)
    if order.language not in device.languages:
        raise LaunchRefused(launch.can_not_judge(device, Language(order.language)), "language")
    with transaction.atomic():
        run = launch.create(None, order, sizing, device)
        claim = claims.take(run.pk)
    assert claim is not None
    return run, claim


class Worker(threading.Thread):
    """Works on the claimed run until it is over."""

    def __init__(self, claim: Claim, zygote: Zygote) -> None:
        super().__init__(name=f"run {claim.run_id}", daemon=True)
        self._claim = claim
        self._zygote = zygote

    def run(self) -> None:
        """See `threading.Thread.run`. Attempts that break off are repeated, as the server worker would have them."""
        try:
            claim: Claim | None = self._claim
            while claim is not None:
                tasks.work(claim, self._evaluator)
                claim = claims.take(claim.run_id)
        finally:
            connections.drop()

    def _evaluator(self, hold: Hold, run: Run, assignment: Assignment) -> Evaluator:
        return LocalEvaluator(assignment, self._zygote, interrupt=RowInterrupt(hold))


class RowInterrupt(Interrupt):
    """Orders to stop as they stand in the run's row, looked for while a judgement goes on."""

    def __init__(self, hold: Hold) -> None:
        super().__init__()
        self._hold = hold
        self._looked = 0.0

    def check(self, *, finishing: bool) -> None:
        """Raise `Stopped` where the work in hand is to be interrupted."""
        self._hold.check()
        if time.monotonic() - self._looked < _LOOK_EVERY:
            return
        self._looked = time.monotonic()
        order = stop_order(Run.objects.only("pk", "state").get(pk=self._hold.claim.run_id))
        if order is not None and (order.at_once or not finishing):
            raise Stopped(order.reason, at_once=order.at_once)
