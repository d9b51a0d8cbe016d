"""Jobs asked for, handed out one at a time and cancelled."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apps.hosts import jobs, registry
from apps.hosts.dispatch import dispatch, dispatch_all
from apps.hosts.models import Device, Host, Job, JobState
from apps.hosts.signals import job_over
from apps.people.models import Person
from apps.station.messages import ReportKind
from tests.hosts.conftest import Send, Station, Submit, evaluation

pytestmark = pytest.mark.django_db(transaction=True)


def test_asked_twice_under_one_key_it_is_done_once(submit: Submit, station: Station, device: Device) -> None:
    first = submit("run:1:step", priority=1)
    again = submit("run:1:step", priority=5)
    assert (again.pk, again.priority) == (first.pk, 1)
    assert station.nudged == [device.pk]


def test_a_device_does_one_job_at_a_time(submit: Submit, station: Station, device: Device) -> None:
    first, second = submit("a"), submit("b")
    assert dispatch(device.pk) == first
    assert dispatch(device.pk) is None
    station.say(ReportKind.DONE, station.orders[0], 1, payload=evaluation())
    assert dispatch(device.pk) == second
    assert [order.job for order in station.orders] == [first.pk, second.pk]


def test_whoever_a_person_waits_for_goes_first(submit: Submit, station: Station, device: Device) -> None:
    submit("old"), submit("older still waits")
    urgent = submit("urgent", priority=3)
    assert dispatch(device.pk) == urgent


def test_what_somebody_comes_to_wait_for_moves_up_and_never_down(
    submit: Submit, station: Station, device: Device
) -> None:
    first, later = submit("first"), submit("later", priority=-1)
    jobs.hasten(later.pk, 5)
    jobs.hasten(later.pk, 3)
    assert Job.objects.get(pk=later.pk).priority == 5
    assert dispatch(device.pk) == later
    jobs.hasten(later.pk, 9)
    assert Job.objects.get(pk=later.pk).priority == 5
    assert Job.objects.get(pk=first.pk).priority == 0


def test_two_who_look_at_once_send_one_job(submit: Submit, station: Station, device: Device) -> None:
    for key in "abcd":
        submit(key)
    together = threading.Barrier(4)

    def look() -> None:
        together.wait()
        dispatch(device.pk)
        connection.close()

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(station.orders) == 1
    assert Job.objects.filter(state=JobState.SENT).count() == 1


def test_an_order_the_broker_does_not_take_waits_on(submit: Submit, station: Station, device: Device) -> None:
    job = submit()
    station.reachable = False
    dispatch(device.pk)
    job.refresh_from_db()
    assert job.state == JobState.WAITING
    station.reachable = True
    assert dispatch_all() == [job]


def test_nothing_goes_to_a_host_that_is_drained_or_silent(submit: Submit, station: Station, host: Host) -> None:
    submit()
    registry.drain(host)
    assert dispatch_all() == []
    registry.enable(host)
    Host.objects.update(seen_at=timezone.now() - timedelta(seconds=31))
    assert dispatch_all() == []
    station.alive()
    assert len(dispatch_all()) == 1


def test_cancelled_while_waiting_it_never_goes(submit: Submit, station: Station, device: Device) -> None:
    job = submit()
    assert jobs.cancel(job, "stopped")
    assert not jobs.cancel(job, "again")
    assert (job.state, job.error, job.is_over) == (JobState.CANCELLED, "stopped", True)
    assert dispatch(device.pk) is None
    assert station.cancelled == []


def test_cancelled_while_it_runs_its_station_is_told_and_its_result_ignored(send: Send, station: Station) -> None:
    job, order = send()
    station.say(ReportKind.STARTED, order, 1)
    jobs.cancel(job, "stopped")
    assert station.cancelled == [(job.pk, 1)]
    assert not station.say(ReportKind.DONE, order, 2, payload=evaluation())
    job.refresh_from_db()
    assert (job.state, job.result) == (JobState.CANCELLED, None)


def test_what_a_listener_cannot_keep_is_not_over(send: Send, station: Station) -> None:
    def refuse(**_: object) -> None:
        raise RuntimeError("the room above can't take it in")

    job, order = send()
    job_over.connect(refuse)
    try:
        with pytest.raises(RuntimeError):
            station.say(ReportKind.DONE, order, 1, payload=evaluation())
    finally:
        job_over.disconnect(refuse)
    job.refresh_from_db()
    assert job.state == JobState.SENT
    assert station.say(ReportKind.DONE, order, 1, payload=evaluation())


def test_who_allowed_weak_isolation_is_kept(host: Host, admin: Person) -> None:
    registry.allow_weak_isolation(host, admin)
    host.refresh_from_db()
    assert host.weak_isolation_allowed_by == admin
    registry.forbid_weak_isolation(host)
    host.refresh_from_db()
    assert host.weak_isolation_allowed_by is None


def test_submitting_within_a_transaction_nudges_after_it(submit: Submit, station: Station, device: Device) -> None:
    with transaction.atomic():
        submit()
        assert station.nudged == []
    assert station.nudged == [device.pk]
