"""The task as the worker runs it: claim, assignment, loop, jobs of the device, rows and events; only the coder is scripted."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from apps.agents.coders import Pair
from apps.hosts import jobs, waiting
from apps.hosts.models import Device, Job, JobState
from apps.kernels.plain import to_plain
from apps.people.models import Person
from apps.runs import beat, claims, launch, remeasure, steering, tasks
from apps.runs.assignments import pinned
from apps.runs.launch import LaunchOrder
from apps.runs.models import Draft, Event, JournalEntry, Measurement, Problem, Purpose, Run, RunState, Version
from tests.agents.doubles import ScriptedCoder, ScriptedConductor, World, an_evaluation
from tests.patience import PATIENCE, until
from tests.runs.scripted import silence, stays_paused
from tests.runs.station import Station

pytestmark = [pytest.mark.django_db(transaction=True)]
MakeRun = Callable[..., Run]


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no bell in these tests, so waiting for a job looks often."""
    monkeypatch.setattr(waiting, "LOOK_EVERY", 0.05)
    monkeypatch.setattr(waiting, "STOP_EVERY", 0.05)


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Callable[[World], None]:
    """Puts a scripted coder and conductor in the place of the built-in ones."""

    def put(world: World) -> None:
        pair = Pair(ScriptedCoder(world), ScriptedConductor(world))
        monkeypatch.setattr(tasks, "coder_named", lambda name: pair)

    return put


def in_background(run: Run) -> threading.Thread:
    def work() -> None:
        try:
            tasks.work_on_run(run.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def kinds(run: Run) -> list[str]:
    return list(Event.objects.filter(run=run).order_by("seq").values_list("kind", flat=True))


def test_a_launched_run_ends_with_a_proven_kernel(
    script: Any, problem: Problem, device: Device, person: Person
) -> None:
    script(
        World(
            {(1, 0): "build_failed", (2, 0): "correct 1.5", (3, 0): "correct 3.1"}, repairs={(1, 0, 1): "correct 1.2"}
        )
    )
    run = launch.launch(person, LaunchOrder(problem, "here/cpu", iterations=3))
    with Station() as station:
        tasks.work_on_run(run.pk)
    run.refresh_from_db()

    assert run.state == RunState.FINISHED
    assert run.result is not None and run.result.source == "correct 3.1"
    assert run.speedup == pytest.approx(3.1)
    assert (run.outcome, run.claim, run.doing) == ("faster", None, "")
    assert kinds(run)[:3] == ["launched", "claimed", "step_began"]
    assert kinds(run)[-1] == "run_ended"
    assert len(set(station.worked_on)) == len(station.worked_on) >= 5
    final = Measurement.objects.get(version=run.result, purpose=Purpose.FINAL)
    assert (final.tier, final.outcome) == ("full", "faster")
    assert final.job is not None and final.job.key.startswith(f"run:{run.pk}:3.")
    texts = list(Event.objects.filter(run=run, kind="version_kept").order_by("seq").values_list("text", flat=True))
    assert texts[0].startswith("v1 build failed: ")
    assert texts[-1] == "v4 correct, 3.10× [3.04, 3.16], best so far"
    assert not Draft.objects.filter(run=run).exists()


def test_a_worker_that_dies_while_a_device_judges_costs_no_second_judgement(
    script: Any, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(World({(1, 0): "correct 1.5"}))
    run = make_run(iterations=1)

    class Died(BaseException):
        pass

    def dies(self: Any) -> None:
        if Job.objects.filter(state=JobState.WAITING).exists():
            raise Died

    with monkeypatch.context() as dying, pytest.raises(Died):
        dying.setattr(beat.Hold, "check", dies)
        tasks.work_on_run(run.pk)
    assert Job.objects.count() == 1
    silence(run)
    with Station() as station:
        tasks.work_on_run(run.pk)
    run.refresh_from_db()
    assert run.state == RunState.FINISHED
    assert run.attempt == 2
    assert len(station.worked_on) == len(set(station.worked_on)) == 2


def test_stopping_cancels_the_judgement_in_hand_and_judges_the_best(
    script: Any, make_run: MakeRun, person: Person
) -> None:
    script(World({(1, 0): "correct 1.5", (2, 0): "correct 2.0 # hangs"}))
    run = make_run(iterations=3)
    with Station():
        working = in_background(run)
        hanging = until(
            lambda: Job.objects.filter(request__candidate="correct 2.0 # hangs", state=JobState.RUNNING).first()
        )
        draft = until(lambda: Draft.objects.filter(run=run, text__contains="pair 3 of 30").first())
        assert draft.agent == "verifier"
        steering.stop(run, person)
        working.join(PATIENCE)
    run.refresh_from_db()
    hanging.refresh_from_db()
    assert hanging.state == JobState.CANCELLED
    assert run.state == RunState.STOPPED
    assert run.result is not None and run.result.number == 1


def test_stopping_at_once_judges_nothing_more(script: Any, make_run: MakeRun, person: Person) -> None:
    script(World({(1, 0): "correct 1.5", (2, 0): "correct 2.0 # hangs"}))
    run = make_run(iterations=3)
    with Station():
        working = in_background(run)
        until(lambda: Job.objects.filter(request__candidate="correct 2.0 # hangs", state=JobState.RUNNING).first())
        steering.stop(run, person, at_once=True)
        working.join(PATIENCE)
    run.refresh_from_db()
    assert (run.state, run.result, run.speedup) == (RunState.STOPPED, None, 1.0)
    assert run.best is not None
    assert not Measurement.objects.filter(version__run=run, purpose=Purpose.FINAL).exists()


def test_a_paused_run_waits_and_goes_on(
    script: Any, make_run: MakeRun, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_a_while = stays_paused(monkeypatch)
    script(World({(1, 0): "correct 1.1 # hangs", (2, 0): "correct 2"}))
    run = make_run(iterations=2)
    with Station():
        working = in_background(run)
        hanging = until(lambda: Job.objects.filter(state=JobState.RUNNING).first())
        steering.pause(run, person)
        jobs.end(hanging, JobState.FAILED, error="it hung")
        again = until(lambda: Job.objects.filter(key__contains="-again").first())
        until(lambda: Job.objects.get(pk=again.pk).state == JobState.RUNNING)
        jobs.end(Job.objects.get(pk=again.pk), JobState.DONE, result=to_plain(an_evaluation("correct 1.1")))
        until(lambda: Version.objects.filter(run=run).exists())
        wait_a_while()
        assert Version.objects.filter(run=run).count() == 1
        assert Run.objects.get(pk=run.pk).state == RunState.PAUSED
        steering.resume(run, person)
        working.join(PATIENCE)
    run.refresh_from_db()
    assert run.state == RunState.FINISHED
    assert Version.objects.filter(run=run).count() == 2


def test_a_worker_told_to_leave_gives_its_run_back_and_another_goes_on(script: Any, make_run: MakeRun) -> None:
    script(World({(1, 0): "correct 1.5", (2, 0): "correct 2.0 # hangs"}))
    run = make_run(iterations=2)
    old = beat.beat
    with Station():
        working = in_background(run)
        hanging = until(
            lambda: Job.objects.filter(request__candidate="correct 2.0 # hangs", state=JobState.RUNNING).first()
        )
        try:
            old.leave()
            working.join(PATIENCE)
            assert not working.is_alive()
        finally:
            old._leaving.clear()
        run.refresh_from_db()
        assert (run.state, run.claim, run.fruitless) == (RunState.RUNNING, None, 0)
        hanging.refresh_from_db()
        assert hanging.state == JobState.RUNNING
        assert claims.find_lost() == [run.pk]
        jobs.end(hanging, JobState.DONE, result=to_plain(an_evaluation("correct 2.0")))
        tasks.work_on_run(run.pk)
    run.refresh_from_db()
    assert run.state == RunState.FINISHED
    assert run.result is not None and run.result.number == 2


def test_a_device_that_can_not_judge_fails_the_run_and_says_why(script: Any, make_run: MakeRun) -> None:
    script(World({(1, 0): "lost"}))
    run = make_run(iterations=1)
    with Station():
        tasks.work_on_run(run.pk)
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "the host is lost; start its station again" in run.reason


def test_an_error_of_the_machinery_is_tried_again_and_then_told(
    script: Any, make_run: MakeRun, caplog: pytest.LogCaptureFixture
) -> None:
    run = make_run(iterations=1)
    script(World({(1, 0): ZeroDivisionError("oh no")}))  # type: ignore[dict-item]
    for _ in range(4):  # the first one journals what it read before it broke off
        tasks.work_on_run(run.pk)
    run.refresh_from_db()
    assert run.attempt == 4
    assert run.state == RunState.FAILED
    assert "ZeroDivisionError: oh no" in run.reason
    assert "Traceback" not in run.reason
    assert "Traceback" in caplog.text


def test_limits_changed_while_it_waits_leave_the_assignment_as_it_was(
    script: Any, make_run: MakeRun, person: Person
) -> None:
    run = make_run(iterations=1)
    script(World({(1, 0): "correct 1.5", (2, 0): "correct 1.7"}))
    claim = claims.take(run.pk)
    assert claim is not None
    assert pinned(claim, run).iterations == 1
    silence(run)
    steering.change_limits(run, person, steering.Limits(iterations=2))
    with Station():
        tasks.work_on_run(run.pk)
    run.refresh_from_db()
    assert run.iteration == 2
    assert JournalEntry.objects.get(run=run, key="assignment").result["iterations"] == 1


def test_measuring_a_version_again(script: Any, make_run: MakeRun, person: Person, device: Device) -> None:
    script(World({(1, 0): "correct 1.5"}))
    run = make_run(iterations=1)
    with Station():
        tasks.work_on_run(run.pk)
        version = Version.objects.get(run=run)
        before = version.measurement
        job = remeasure.measure_again(person, version, device)
        with pytest.raises(Exception, match="again already"):
            remeasure.measure_again(person, version, device)
        until(lambda: Job.objects.get(pk=job.pk).is_over)
    again = Measurement.objects.get(version=version, purpose=Purpose.AGAIN)
    assert (again.asked_by, again.tier, again.outcome) == (person, "full", "faster")
    version.refresh_from_db()
    assert version.measurement == before
    assert kinds(run)[-1] == "remeasured"


def test_a_run_whose_host_went_silent_for_good_is_told_to_people(make_run: MakeRun) -> None:
    run = make_run(
        state=RunState.RUNNING, attempt=1, claim="0" * 32, claim_expires_at=timezone.now() - timedelta(hours=1)
    )
    assert run.is_lost
    assert claims.find_lost() == [run.pk]
