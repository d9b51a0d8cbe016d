"""A run with a model through Django: the scripted server answers, a station judges by the comment in each candidate."""

from __future__ import annotations

from apps.hosts import jobs
from apps.hosts.models import Job, JobState
from apps.kernels.evaluation import EvaluationRequest
from apps.kernels.plain import to_plain
from tests.agents.doubles import an_evaluation
from tests.agents_models.server import ECHO, Reply, Request
from tests.agents_models.world import answer, counsel, is_conductor, judged

CHATTER = Reply(f"I would be glad to help you with kernels, {ECHO}! Which one would you like?")


def judge(job: Job, request: EvaluationRequest) -> None:
    """What the scripted device finds of the candidate."""
    against = judged(request.against) if request.against else None
    found = an_evaluation(judged(request.candidate), request.tier, profile=request.profile, against=against)
    jobs.end(job, JobState.DONE, result=to_plain(found))


def by_what_is_asked(request: Request) -> Reply:
    """The same question gets the same answer, however often it is asked."""
    if is_conductor(request):
        return counsel()
    speeds = [f"correct {1 + tenth / 10:.1f}" for tenth in range(3, 30)]
    known = next((at for at, one in reversed(list(enumerate(speeds))) if f"judged: {one}\n" in request.prompt), -1)
    return answer(speeds[known + 1])
