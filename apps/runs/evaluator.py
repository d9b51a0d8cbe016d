"""The run's device as the loop sees it: a judgement is a job's row, submitted once under its key and waited for.

A resumed run finds the job under the same key, done or still going, so that no device works twice.
"""

from __future__ import annotations

from apps.agents.local import news
from apps.agents.ports import JudgingFailed, Say, Stopped
from apps.agents.words import Assignment
from apps.hosts import jobs, queries, waiting
from apps.hosts.models import Job, JobKind, JobState
from apps.kernels.evaluation import Evaluation, Progress, Tier
from apps.kernels.plain import BadPlain, from_plain, to_plain
from apps.runs import connections
from apps.runs.beat import Hold
from apps.runs.control import StopOrder, stop_order
from apps.runs.models import Run

_WHILE_AWAY = 1.0  # seconds between looks while the database is away


class JobEvaluator:
    """`apps.agents.ports.Evaluator` over the queue of the run's device."""

    def __init__(self, hold: Hold, run: Run, assignment: Assignment) -> None:
        self._hold = hold
        self._run = run
        self._assignment = assignment

    def evaluate(
        self,
        key: str,
        source: str,
        tier: Tier,
        *,
        profile: bool,
        say: Say,
        against: str | None = None,
        real_headers: bool = False,
        finishing: bool = False,
    ) -> Evaluation:
        """See `apps.agents.ports.Evaluator.evaluate`."""
        request = self._assignment.request(source, tier, profile=profile, against=against, real_headers=real_headers)
        job = jobs.submit(
            key=f"run:{self._run.pk}:{key}",
            kind=JobKind.EVALUATE,
            device=self._run.device,
            request=to_plain(request),
            origin=f"run {self._run.pk}",
            owner=self._run.owner,
            deadline_seconds=request.deadline_seconds,
        )
        return self._outcome(self._wait(job.pk, say, finishing=finishing))

    def _wait(self, job_id: int, say: Say, *, finishing: bool) -> Job:
        """The job once it is over. Its news are said as they come; an order to stop cancels it."""
        told = News(say)

        def interrupted() -> bool:
            self._hold.check()
            self._heed_stop(job_id, finishing=finishing)
            return False

        while True:
            try:
                return waiting.wait(job_id, should_stop=interrupted, news=told.tell)
            except connections.AWAY:
                connections.drop()
                self._hold.wait(_WHILE_AWAY)

    def _heed_stop(self, job_id: int, *, finishing: bool) -> None:
        order: StopOrder | None = stop_order(Run.objects.only("pk", "state").get(pk=self._run.pk))
        if order is None or (finishing and not order.at_once):
            return
        jobs.cancel(Job.objects.get(pk=job_id), order.reason)
        raise Stopped(order.reason, at_once=order.at_once)

    def _outcome(self, job: Job) -> Evaluation:
        if job.state == JobState.DONE:
            try:
                return from_plain(Evaluation, job.result)
            except BadPlain as problem:
                raise JudgingFailed(f"{self._run.device} sent a result that can't be read: {problem}") from None
        if job.state == JobState.CANCELLED:
            raise JudgingFailed(f"The job on {self._run.device} was cancelled: {job.error or 'no reason was given'}.")
        raise JudgingFailed(f"{self._run.device} could not judge: {job.error or 'it gave no reason'}")


class News:
    """Turns a job's stage and message into lines of streaming text, each said once."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._last = ""

    def tell(self, job: Job) -> None:
        """Say what is new."""
        line = _news(job)
        if line and line != self._last:
            self._say(line + "\n")
            self._last = line


def _news(job: Job) -> str:
    if job.is_over:
        return ""
    if job.state == JobState.WAITING:
        return queries.why_waiting(job) if job.attempt == 0 else f"once more: {queries.why_waiting(job)}"
    if job.state == JobState.SENT:
        return f"sent to {job.device}"
    stage = job.stage or "running"
    return news(Progress(stage, job.message, job.fraction))
