"""One worker at a time on a run, and none that comes back from the dead."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection

from apps.runs import claims, events, steering
from apps.runs.events import ClaimLost, Entry
from apps.runs.models import Draft, Event, Run, RunState
from tests.runs.scripted import silence, take

pytestmark = pytest.mark.django_db(transaction=True)
MakeRun = Callable[..., Run]


def kinds(run: Run) -> list[str]:
    return list(Event.objects.filter(run=run).order_by("seq").values_list("kind", flat=True))


def test_of_many_workers_woken_at_once_one_gets_the_run(make_run: MakeRun) -> None:
    run, taken, barrier = make_run(), [], threading.Barrier(8)

    def worker() -> None:
        barrier.wait()
        try:
            taken.append(claims.take(run.pk))
        finally:
            connection.close()

    threads = [threading.Thread(target=worker) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(taken) == 8
    assert sum(claim is not None for claim in taken) == 1
    run.refresh_from_db()
    assert (run.state, run.attempt, run.last_seq) == (RunState.RUNNING, 1, 1)
    assert kinds(run) == ["claimed"]


def test_a_held_run_is_not_taken_and_a_silent_one_is(make_run: MakeRun) -> None:
    run = make_run()
    first = take(run)
    assert claims.take(run.pk) is None
    silence(run)
    second = take(run)
    assert second.id != first.id
    assert second.attempt == 2


def test_a_stalled_worker_can_not_write_after_its_successor(make_run: MakeRun) -> None:
    run = make_run()
    stalled = take(run)
    silence(run)
    take(run)
    before = kinds(run)
    with pytest.raises(ClaimLost):
        events.append(run.pk, [Entry("log", "from the dead")], claim=stalled.id)
    with pytest.raises(ClaimLost):
        claims.hold(stalled)
    claims.release(stalled)
    claims.give_up(stalled, "it says")
    claims.fail(stalled, "it says")
    assert kinds(run) == before
    run.refresh_from_db()
    assert run.state == RunState.RUNNING
    assert run.claim is not None


def test_a_beat_keeps_what_is_held_and_tells_what_is_gone(make_run: MakeRun) -> None:
    kept, gone = make_run(), make_run()
    good, bad = take(kept), take(gone)
    silence(gone)
    take(gone)
    silence(kept)
    assert claims.renew({good.id, bad.id}) == {good.id}
    assert claims.take(kept.pk) is None


def test_a_silent_worker_is_told_of_once_and_its_run_waits(make_run: MakeRun) -> None:
    run, quiet = make_run(), make_run()
    take(run)
    take(quiet)
    silence(run)
    assert claims.find_lost() == [run.pk]
    assert claims.find_lost() == [run.pk]
    assert kinds(run) == ["claimed", "lost"]
    run.refresh_from_db()
    assert run.is_lost
    take(run)
    assert claims.find_lost() == []


def test_runs_that_wait_are_found_whatever_they_wait_for(make_run: MakeRun, person: object) -> None:
    queued, released, paused = make_run(), make_run(), make_run()
    claims.release(take(released))
    claim = take(paused)
    Run.objects.filter(pk=paused.pk).update(state=RunState.PAUSED)
    claims.release(claim)
    make_run(state=RunState.FINISHED)
    assert claims.find_lost() == [queued.pk, released.pk, paused.pk]
    assert take(paused).run_id == paused.pk
    paused.refresh_from_db()
    assert paused.state == RunState.PAUSED


def test_three_attempts_without_a_new_step_fail_the_run(make_run: MakeRun) -> None:
    run = make_run()
    for _ in range(3):
        take(run)
        silence(run)
    assert claims.take(run.pk) is None
    assert claims.find_lost() == []
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "3 attempts in a row" in run.reason
    assert kinds(run)[-1] == "run_ended"


def test_an_attempt_that_broke_off_says_why_and_the_last_one_ends_the_run(make_run: MakeRun) -> None:
    run = make_run()
    for _ in range(3):
        claims.give_up(take(run), "ZeroDivisionError: division by zero")
    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert "division by zero" in run.reason


def test_giving_a_run_back_counts_as_no_failed_attempt(make_run: MakeRun) -> None:
    run = make_run()
    for _ in range(5):
        claims.release(take(run))
    run.refresh_from_db()
    assert (run.state, run.fruitless, run.attempt) == (RunState.RUNNING, 0, 5)


def test_text_of_a_dead_worker_is_gone_when_the_next_takes_over(make_run: MakeRun) -> None:
    run = make_run()
    take(run)
    Draft.objects.create(run=run, step="1.0.write.0", agent="coder", text="half a thou")
    silence(run)
    take(run)
    assert not Draft.objects.filter(run=run).exists()


def test_a_queued_run_that_is_stopped_is_never_taken(make_run: MakeRun, person: object) -> None:
    run = make_run()
    steering.stop(run, person)  # type: ignore[arg-type]
    assert claims.take(run.pk) is None
    run.refresh_from_db()
    assert run.state == RunState.STOPPED
