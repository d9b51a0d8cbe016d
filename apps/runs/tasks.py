"""Where a run's row meets the loop's ports, and the Celery tasks that make it happen.

A message only wakes a worker; the row decides who works. A worker that is told to leave gives its runs back; one that
died is found by `find_lost_runs`, which the server worker does every few seconds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from celery import shared_task
from celery.signals import worker_shutting_down
from django.db import close_old_connections

from apps.agents.coders import BUILTIN, Pair, UnknownCoder, coder_named
from apps.agents.local import WallClock
from apps.agents.loop import optimise
from apps.agents.ports import Evaluator
from apps.agents.steps.course import Team
from apps.agents.words import Assignment
from apps.ledger import accounts, registry
from apps.runs import claims, connections, problems, queue
from apps.runs.assignments import pinned
from apps.runs.beat import Hold, Leaving, beat
from apps.runs.claims import Claim
from apps.runs.control import Heed, RunControl
from apps.runs.evaluator import JobEvaluator
from apps.runs.events import ClaimLost
from apps.runs.exchanges import KeptCalls
from apps.runs.journal import RunJournal
from apps.runs.models import Run
from apps.runs.recorder import Recorder
from apps.runs.refusals import Refused
from apps.runs.spending import RunPurse

EvaluatorMaker = Callable[[Hold, Run, Assignment], Evaluator]

# A run that waits is told to the workers again after this long: the broker may have lost the first message.
_WAKE_AGAIN_AFTER = 30.0
_woken: dict[int, float] = {}

log = logging.getLogger(__name__)


@shared_task(name=queue.TASK, ignore_result=True)
def work_on_run(run_id: int) -> None:
    """Work on the run until it is over, if nobody does yet."""
    close_old_connections()
    try:
        claim = claims.take(run_id)
        if claim is not None:
            work(claim)
    finally:
        connections.drop()


def work(claim: Claim, evaluator: EvaluatorMaker = JobEvaluator) -> None:
    """Do the claimed run, or the rest of it. Whatever breaks off is written to the run's log; nothing is raised."""
    with beat.holding(claim) as hold:
        try:
            _optimise(hold, evaluator)
        except ClaimLost:
            log.warning("Run %s: attempt %s lost its claim and stops", claim.run_id, claim.attempt)
        except Leaving:
            claims.release(claim)
        except (Refused, UnknownCoder) as refusal:
            claims.fail(claim, str(refusal))
        except Exception as problem:
            log.exception("Run %s: attempt %s broke off", claim.run_id, claim.attempt)
            claims.give_up(claim, f"{type(problem).__name__}: {problem}")


def _optimise(hold: Hold, evaluator: EvaluatorMaker) -> None:
    claim = hold.claim
    run = Run.objects.select_related("problem", "sizing", "device__host", "owner").get(pk=claim.run_id)
    assignment = pinned(claim, run)
    journal = RunJournal(hold, Recorder(claim, run.device_id))
    pair = _pair(hold, run, journal)
    team = Team(
        coder=pair.coder,
        conductor=pair.conductor,
        evaluator=evaluator(hold, run, assignment),
        journal=journal,
        control=RunControl(hold, assignment),
        clock=WallClock(),
        verifier=pair.verifier,
    )
    optimise(assignment, team)


def _pair(hold: Hold, run: Run, journal: RunJournal) -> Pair:
    """The run's coder with its Conductor. Raises `Refused` where its model may not or can't be called any more."""
    if run.coder == BUILTIN:
        return coder_named(run.coder)
    model = registry.usable(run.coder)
    settings = registry.settings_of(model)
    if run.temperatures:
        settings = replace(settings, temperature=None, temperatures=tuple(run.temperatures))
    if run.seconds_limit is not None:
        settings = replace(settings, wall_seconds=min(settings.wall_seconds, run.seconds_limit))
    purse = KeptCalls(RunPurse(hold, model, journal), run.pk, lambda: journal.doing)
    return coder_named(run.coder, settings, heed=Heed(hold), purse=purse)


@shared_task(name="runs.find_lost", ignore_result=True)
def find_lost_runs() -> None:
    """Wake the workers for every run that waits: new ones the broker lost, and those whose worker went silent."""
    now = time.monotonic()
    accounts.release_lost(claims.living(accounts.open_claims()))
    for run_id in claims.find_lost():
        if now - _woken.get(run_id, -_WAKE_AGAIN_AFTER) >= _WAKE_AGAIN_AFTER:
            _woken[run_id] = now
            queue.wake(run_id)


@shared_task(name="runs.catch_up", ignore_result=True)
def catch_up() -> None:
    """Have problems looked at that no host was there for."""
    problems.look_at_unchecked()


@worker_shutting_down.connect
def _leave(**_: Any) -> None:
    beat.leave()
