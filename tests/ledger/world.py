"""A run with a model through Django: the scripted server answers, a station judges by the comment in each candidate."""

from __future__ import annotations

import base64
import json
from io import StringIO
from typing import Any
from urllib.parse import quote

from django.core.management import call_command
from django.test import Client

from apps.hosts import jobs
from apps.hosts.models import Job, JobState
from apps.kernels.evaluation import EvaluationRequest
from apps.kernels.plain import to_plain
from apps.ledger.models import LanguageModel
from apps.people.models import Person
from apps.runs import exchanges, launch, tasks
from apps.runs.launch import LaunchOrder
from apps.runs.models import Event, Problem, Run
from tests.agents.doubles import an_evaluation
from tests.agents_models.conftest import KEY
from tests.agents_models.server import ECHO, Reply, Request
from tests.agents_models.world import answer, counsel, is_conductor, judged
from tests.runs.station import Station

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


def ordered(problem: Problem, person: Person, **changes: Any) -> Run:
    return launch.launch(person, LaunchOrder(problem, "here/cpu", coder="scripted", **changes))


def work(run: Run) -> Run:
    with Station(judge):
        tasks.work_on_run(run.pk)
    run.refresh_from_db()
    return run


def text_of(answer: Any) -> str:
    assert answer.status_code == 200
    return str((answer.getvalue() if answer.streaming else answer.content).decode())


def everything_kept(run: Run, model: LanguageModel, client: Client, messages: list[object], log: str) -> str:
    """All that is stored, sent, logged or shown of the run, compressed pieces too."""
    out = StringIO()
    call_command("dumpdata", stdout=out)
    steps = Event.objects.filter(run=run).values_list("step", flat=True).distinct()
    told = [repr(exchanges.of_step(run, step)) for step in steps]
    pages = [
        text_of(client.get(address))
        for address in (
            "/", f"/runs/{run.pk}/", f"/runs/{run.pk}/?tab=log&level=debug", f"/runs/{run.pk}/log.txt",
            f"/runs/{run.pk}/calls/",
            f"/runs/{run.pk}/transcript.json", f"/runs/{run.pk}/v1/", f"/runs/{run.pk}/v1/?tab=advice", f"/runs/{run.pk}/v1.py",
            f"/launch/?copy={run.pk}", "/settings/models/", f"/settings/models/{model.pk}/", "/settings/limits/",
            "/settings/audit/", f"/api/v1/runs/{run.pk}/events/", "/api/v1/models/", f"/api/v1/calls/?run={run.pk}",
        )
    ]  # fmt: skip
    return "\n".join([out.getvalue(), *told, *pages, repr(messages), log])


def assert_no_key(kept: str) -> None:
    """In none of the forms that encodings give it, and not shortened either."""
    for form in (KEY, KEY[:-4], quote(KEY, safe=""), base64.b64encode(KEY.encode()).decode(), json.dumps(KEY)[1:-1]):
        assert form not in kept
