"""The product's journal, recorder and claims under a scripted coder and device (`tests.agents.doubles`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.agents.facts import RunEnded
from apps.agents.loop import optimise
from apps.agents.steps.course import Team
from apps.agents.words import Assignment
from apps.runs import claims, control
from apps.runs.beat import Hold, beat
from apps.runs.claims import Claim
from apps.runs.control import RunControl
from apps.runs.journal import RunJournal
from apps.runs.models import Run
from apps.runs.recorder import Recorder
from tests.agents.doubles import ScriptedCoder, ScriptedConductor, ScriptedDevice, Watch, World
from tests.patience import until


def take(run: Run) -> Claim:
    """The run's claim; fails if it can't be had."""
    claim = claims.take(run.pk)
    assert claim is not None
    return claim


def silence(run: Run) -> None:
    """As if the run's worker had died a while ago."""
    Run.objects.filter(pk=run.pk, claim__isnull=False).update(claim_expires_at=timezone.now() - timedelta(seconds=1))


def stays_paused(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Waits until a paused run has looked several more times whether it may go on, and has not gone on meanwhile."""
    looks, wait = [], Hold.wait

    def counted(hold: Hold, seconds: float) -> None:
        looks.append(seconds)
        wait(hold, seconds)

    def wait_for_looks() -> None:
        before = len(looks)
        until(lambda: len(looks) >= before + 3, "the run doesn't wait")

    monkeypatch.setattr(control, "_PAUSED_LOOK_EVERY", 0.1)
    monkeypatch.setattr(Hold, "wait", counted)
    return wait_for_looks


@dataclass
class Worker:
    """One worker on one run, with the script's world behind its coder and device."""

    run: Run
    world: World
    assignment: Assignment

    def work(self, claim: Claim | None = None, journal: type[RunJournal] = RunJournal, **options: int) -> RunEnded:
        claim = claim or take(self.run)
        with beat.holding(claim) as hold:
            return optimise(self.assignment, self.team(hold, journal, **options))

    def team(self, hold: Hold, journal: type[RunJournal], **options: int) -> Team:
        return Team(
            ScriptedCoder(self.world),
            ScriptedConductor(self.world),
            ScriptedDevice(self.world),
            journal(hold, Recorder(hold.claim, self.run.device_id), **options),
            RunControl(hold, self.assignment),
            Watch(self.world),
        )
