"""Attempts that were lost: their station went silent, was replaced, or its bench died under them.

A loss counts only if server worker and broker stayed up meanwhile. Two counted losses while the candidate's own code was
running say something of the candidate (`crashed`); three losses otherwise say only that it could not be judged.
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.hosts import jobs
from apps.hosts.models import SILENT_AFTER, Fault, Job, JobKind, JobState
from apps.kernels.evaluation import Evaluation, EvaluationRequest, Verdict
from apps.kernels.facts import ProblemFacts
from apps.kernels.plain import Plain, from_plain, to_plain

LOSSES_IN_JAIL = 2
LOSSES = 3

log = logging.getLogger(__name__)


def find_lost(up_since: datetime, now: datetime | None = None) -> list[Job]:
    """Take back what silent stations had. `up_since`: since when server worker and broker have both been up.

    Silence is only held against a station for as long as it could have been heard.
    """
    now = now or timezone.now()
    if now - up_since < SILENT_AFTER:
        return []
    silent = Job.objects.filter(state__in=jobs.ON_A_STATION, heard_at__lt=now - SILENT_AFTER)
    found = []
    for job in silent.select_related("device__host").order_by("pk"):
        why = f"nothing was heard of it for {SILENT_AFTER.total_seconds():.0f} s"
        if lose(job, why, counts=_was_up(job, up_since), heard_before=now - SILENT_AFTER):
            found.append(job)
    return found


def forget_station(host: str, up_since: datetime | None) -> list[Job]:
    """Another station process has taken a host over: what the earlier one had is lost. An order it never read is not held
    against anyone.
    """
    had = Job.objects.filter(device__host__name=host, state__in=jobs.ON_A_STATION)
    found = []
    for job in had.select_related("device__host").order_by("pk"):
        counts = job.state == JobState.RUNNING and up_since is not None and _was_up(job, up_since)
        if lose(job, "its station was started anew", counts=counts):
            found.append(job)
    return found


def lose(job: Job, why: str, *, counts: bool, heard_before: datetime | None = None) -> bool:
    """This attempt is lost. The job waits again, or ends if it was lost too often. Whether it was still the present one."""
    with transaction.atomic():
        present = Job.objects.filter(pk=job.pk, attempt=job.attempt, state__in=jobs.ON_A_STATION)
        if heard_before is not None:
            present = present.filter(heard_at__lt=heard_before)
        in_jail = job.in_jail and job.kind != JobKind.MEASURE
        counted = {"losses": F("losses") + int(counts), "losses_in_jail": F("losses_in_jail") + int(counts and in_jail)}
        if not present.update(**counted):
            return False
        now = Job.objects.select_related("device__host").get(pk=job.pk)
        where = "while the candidate's code was running" if in_jail else "outside the candidate's code"
        note(now, f"Lost {job.origin or job.key}, attempt {job.attempt}, {where}: {why}")
        log.warning("%s: job %s, attempt %s lost (counts: %s): %s", job.origin, job.pk, job.attempt, counts, why)
        if now.losses_in_jail >= LOSSES_IN_JAIL:
            jobs.end(now, JobState.DONE, result=crashed(now))
        elif now.losses >= LOSSES:
            error = (
                f"{now.device} lost it {now.losses} times; the last time, {why}. That says nothing of the candidate."
            )
            jobs.end(now, JobState.FAILED, error=error)
        else:
            jobs.put_back(now)
    return True


def crashed(job: Job) -> Plain:
    """The result of a job whose own code took its judge down, again and again."""
    if job.kind == JobKind.INSPECT:
        refusal = f"Looking at this problem ended the process that did so, {job.losses_in_jail} times."
        return to_plain(
            ProblemFacts(refusal=refusal + " What it does when imported or constructed is too much for a host.")
        )
    request = from_plain(EvaluationRequest, job.request)
    detail = f"It took down the process that judged it, {job.losses_in_jail} times out of {job.attempt} attempts."
    return to_plain(Evaluation(Verdict.CRASHED, request.policy, request.tier, detail=detail))


def note(job: Job, what: str) -> None:
    """Keep a fault for the host's page."""
    Fault.objects.create(host=job.device.host, device=job.device, job=job, what=what[:300])


def _was_up(job: Job, up_since: datetime) -> bool:
    return job.heard_at is not None and up_since <= job.heard_at
