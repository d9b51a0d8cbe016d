"""Ten iterations on three problems with all that models say: the best is kept, each failure shown with its reason."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.hosts import jobs
from apps.hosts.models import Device, Host, Job, JobState
from apps.kernels.evaluation import EvaluationRequest
from apps.kernels.facts import ProblemFacts
from apps.kernels.inspect import inspect
from apps.kernels.jail import Zygote
from apps.kernels.judge import evaluate
from apps.kernels.plain import to_plain
from apps.ledger.models import Call, LanguageModel
from apps.people.models import Person
from apps.runs import assignments, launch, problems, tasks
from apps.runs.launch import LaunchOrder
from apps.runs.models import Event, Problem, Run, RunState, Sizing, SizingState, Version
from tests.conftest import problem_facts
from tests.ledger.ten_iterations import BEST, DROPPED, FAILED, TASKS, VERSIONS, Model, Task, script
from tests.ledger.world import judge
from tests.runs.station import Judge, Station

pytestmark = pytest.mark.django_db(transaction=True)


def taken_in(task: Task, person: Person, facts: ProblemFacts) -> Problem:
    problem = problems.add(person, task.source, title=task.title, look=False)
    sizing = problems.sizing_of(problem, {})
    known = {"state": SizingState.READY, "facts": to_plain(facts), "checked_at": timezone.now(), "job": None}
    Sizing.objects.filter(pk=sizing.pk).update(**known)
    return problem


def optimised(problem: Problem, person: Person, judge: Judge) -> Run:
    Host.objects.update(seen_at=timezone.now())
    run = launch.launch(person, LaunchOrder(problem, "here/cpu", coder="scripted", iterations=10))
    with Station(judge):
        tasks.work_on_run(run.pk)
    run.refresh_from_db()
    return run


def versions_of(run: Run) -> list[tuple[int, int, str]]:
    rows = Version.objects.filter(run=run).select_related("measurement").order_by("number")
    return [(one.iteration, one.repair, one.measurement.verdict if one.measurement else "") for one in rows]


def check(run: Run, client: Client) -> None:
    """Failures are repaired or dropped, and rows, page and API say each for what reason."""
    log = list(Event.objects.filter(run=run, kind__in=("version_kept", "run_ended")).values_list("text", flat=True))
    assert versions_of(run) == VERSIONS, log
    assert run.state == RunState.FINISHED, run.reason
    assert run.reason.startswith("All 10 iterations are done."), log

    dropped = Event.objects.filter(run=run, kind="candidate_dropped")
    assert {one.iteration for one in dropped} == set(DROPPED)
    page = client.get(f"/runs/{run.pk}/").content.decode()
    told = {one["seq"]: one for one in client.get(f"/api/v1/runs/{run.pk}/events/").json()["events"]}
    for one in dropped:
        assert one.iteration is not None
        assert DROPPED[one.iteration] in one.data["reason"]
        assert DROPPED[one.iteration] in page
        assert DROPPED[one.iteration] in told[one.seq]["text"]
    for number, reason in FAILED.items():
        kept = next(one for one in told.values() if one["kind"] == "version_kept" and one["data"]["number"] == number)
        assert reason in kept["text"], kept["text"]
        assert kept["level"] == "warning"
        assert client.get(f"/runs/{run.pk}/v{number}/?tab=checks").status_code == 200
    listed = client.get(f"/api/v1/runs/{run.pk}/versions/").json()["results"]
    assert [(one["iteration"], one["repair"], one["verdict"]) for one in listed] == VERSIONS
    assert "All 10 iterations are done" in page


def test_the_best_is_kept_and_each_failure_shown_for_its_reason(
    server: Any, model: LanguageModel, device: Device, person: Person, signed_in: Client
) -> None:
    answers = Model()
    server.script.play_by(answers)
    for task in TASKS:
        run = optimised(taken_in(task, person, problem_facts()), person, judge)
        check(run, signed_in)
        assert run.result is not None and run.best == run.result
        assert (run.result.number, run.outcome) == (BEST, "faster")
        assert run.result.source == task.kernel("correct 2.9", 1)
        assert answers.asked[task.title] == len(script(task))
        assert Call.objects.filter(run=run.pk, agent="coder").count() == len(script(task))
        assert "could not be used" in signed_in.get(f"/runs/{run.pk}/log.txt").getvalue().decode()


@pytest.mark.lengthy
@pytest.mark.timeout(600)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.title)
def test_the_judge_finds_the_same(
    server: Any, model: LanguageModel, device: Device, person: Person, signed_in: Client, task: Task, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """With compiler, jail and clock in place of the comments. Which is faster, a busy machine may see otherwise."""
    monkeypatch.setenv("PRAGMA_LOCKS", str(tmp_path))
    from_rows = assignments._from_rows
    monkeypatch.setattr(assignments, "_from_rows", lambda run: replace(from_rows(run), plateau=0))
    server.script.play_by(Model())
    with Zygote() as zygote:

        def judged(job: Job, request: EvaluationRequest) -> None:
            jobs.end(job, JobState.DONE, result=to_plain(evaluate(request, zygote=zygote)))

        problem = taken_in(task, person, inspect(task.source, zygote=zygote))
        run = optimised(problem, person, judged)
    check(run, signed_in)
    assert run.best is not None and run.best.measurement is not None
    assert run.best.measurement.verdict == "correct"
    assert (run.result == run.best) == (run.outcome == "faster")
    failed = Version.objects.get(run=run, number=2).measurement
    assert failed is not None and re.search(r"undeclared\W+was not declared", str(failed.evaluation))
