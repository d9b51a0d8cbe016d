"""A station that judges by the script of `tests.agents.doubles`, through the hosts' own services."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connection
from django.utils import timezone

from apps.hosts import jobs
from apps.hosts.models import Job, JobState
from apps.kernels.evaluation import EvaluationRequest
from apps.kernels.plain import from_plain, to_plain
from tests.agents.doubles import an_evaluation
from tests.patience import PATIENCE

Judge = Callable[[Job, EvaluationRequest], None]


def judge(job: Job, request: EvaluationRequest) -> None:
    """What the scripted device finds of the candidate."""
    if "hangs" in request.candidate and not (request.against or request.tier == "full"):
        return
    if request.candidate.startswith("lost"):
        jobs.end(job, JobState.FAILED, error="the host is lost; start its station again")
        return
    found = an_evaluation(request.candidate, request.tier, profile=request.profile, against=request.against)
    jobs.end(job, JobState.DONE, result=to_plain(found))


class Station(threading.Thread):
    """Takes jobs as they come until told to leave. Remembers the keys it worked on."""

    def __init__(self, judge: Judge = judge) -> None:
        super().__init__(daemon=True)
        self._judge = judge
        self._leaving = threading.Event()
        self.worked_on: list[str] = []

    def run(self) -> None:
        """See `threading.Thread.run`."""
        try:
            while not self._leaving.wait(0.02):
                for waiting in Job.objects.filter(state=JobState.WAITING).order_by("-priority", "pk"):
                    self._work(waiting)
        finally:
            connection.close()

    def _work(self, waiting: Job) -> None:
        job = jobs.mark_sent(waiting)
        if job is None:
            return
        self.worked_on.append(job.key)
        jobs.mark_running(job.pk, job.attempt, 1, timezone.now())
        Job.objects.filter(pk=job.pk).update(stage="time", message="pair 3 of 30", fraction=0.1)
        self._judge(job, from_plain(EvaluationRequest, job.request))

    def __enter__(self) -> Station:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leaving.set()
        self.join(PATIENCE)
