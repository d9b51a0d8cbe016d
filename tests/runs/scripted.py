"""The product's journal, recorder and claims under a scripted coder and device (`tests.agents.doubles`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from apps.agents.loop import optimise
from apps.agents.ports import Assignment, RunEnded
from apps.agents.steps.course import Team
from apps.runs import claims
from apps.runs.beat import Hold, beat
from apps.runs.claims import Claim
from apps.runs.control import RunControl
from apps.runs.journal import RunJournal
from apps.runs.models import Run
from apps.runs.recorder import Recorder
from tests.agents.doubles import ScriptedCoder, ScriptedConductor, ScriptedDevice, Watch, World


def take(run: Run) -> Claim:
    """The run's claim; fails if it can't be had."""
    claim = claims.take(run.pk)
    assert claim is not None
    return claim


def silence(run: Run) -> None:
    """As if the run's worker had died a while ago."""
    Run.objects.filter(pk=run.pk, claim__isnull=False).update(claim_expires_at=timezone.now() - timedelta(seconds=1))


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
