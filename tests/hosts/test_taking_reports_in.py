"""Each report takes effect once, and only for the attempt that is the present one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.hosts.models import Device, Fault, Host, Job, JobKind, JobState
from apps.hosts.signals import job_over
from apps.kernels.machine import Bandwidth, Ceilings, DeviceReport
from apps.kernels.plain import to_plain
from apps.station.messages import Doing, ReportKind
from tests.conftest import host_report
from tests.hosts.conftest import Send, Station, Submit, evaluation, progress

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_job_runs_and_is_done(send: Send, station: Station) -> None:
    job, order = send()
    assert (order.attempt, order.kind, order.request) == (1, "evaluate", job.request)
    assert station.say(ReportKind.STARTED, order, 1)
    assert station.say(ReportKind.PROGRESS, order, 2, payload=progress("check"), in_jail=True)
    job.refresh_from_db()
    assert (job.state, job.stage, job.fraction, job.in_jail) == (JobState.RUNNING, "check", 0.5, True)
    assert station.say(ReportKind.DONE, order, 3, payload=evaluation())
    job.refresh_from_db()
    assert (job.state, job.result, job.in_jail) == (JobState.DONE, evaluation(), False)
    assert job.finished_at is not None


def test_a_result_that_arrives_twice_is_told_once(send: Send, station: Station) -> None:
    told = []

    def listen(job: Job, **_: object) -> None:
        told.append(job.pk)

    job_over.connect(listen)
    try:
        job, order = send()
        assert station.say(ReportKind.DONE, order, 3, payload=evaluation())
        assert not station.say(ReportKind.DONE, order, 3, payload=evaluation())
    finally:
        job_over.disconnect(listen)
    assert told == [job.pk]


def test_news_that_comes_late_or_twice_changes_nothing(send: Send, station: Station) -> None:
    job, order = send()
    station.say(ReportKind.PROGRESS, order, 3, payload=progress("time"))
    assert not station.say(ReportKind.PROGRESS, order, 2, payload=progress("check"))
    assert not station.say(ReportKind.PROGRESS, order, 3, payload=progress("check"))
    assert not station.say(ReportKind.STARTED, order, 1)
    job.refresh_from_db()
    assert (job.state, job.stage, job.heard_n) == (JobState.RUNNING, "time", 3)


def test_an_old_attempt_is_ignored_and_its_station_told(send: Send, station: Station) -> None:
    job, order = send()
    Job.objects.update(attempt=2)
    assert not station.say(ReportKind.PROGRESS, order, 9, payload=progress("check"))
    assert not station.say(ReportKind.DONE, order, 10, payload=evaluation())
    assert station.cancelled == [(job.pk, 1)]
    job.refresh_from_db()
    assert job.state == JobState.SENT


def test_a_station_that_missed_a_cancellation_hears_it_again(send: Send, station: Station) -> None:
    job, _ = send()
    station.alive(Doing("cpu", job.pk, 1, in_jail=True))
    job.refresh_from_db()
    assert job.in_jail and station.cancelled == []
    Job.objects.update(state=JobState.CANCELLED)
    station.alive(Doing("cpu", job.pk, 1, in_jail=True))
    assert station.cancelled == [(job.pk, 1)]


def test_a_host_that_could_not_do_it_says_why(send: Send, station: Station) -> None:
    job, order = send()
    assert station.say(ReportKind.FAILED, order, 2, payload={"error": "no compiler"})
    job.refresh_from_db()
    assert (job.state, job.error) == (JobState.FAILED, "no compiler")
    assert "no compiler" in Fault.objects.get().what


def test_a_result_of_another_version_fails_the_job(send: Send, station: Station) -> None:
    job, order = send()
    assert station.say(ReportKind.DONE, order, 2, payload={"speed": 3})
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "can't be read" in job.error


def test_a_new_host_joins_with_its_devices_and_is_measured(db: None, station: Station) -> None:
    report = replace(host_report(), devices=(*host_report().devices, DeviceReport("gpu0", "cuda", "H", 1, ())))
    station.say(ReportKind.HELLO, payload=to_plain(report))
    host = Host.objects.get()
    assert host.facts == report
    assert set(host.devices.values_list("name", "retired")) == {("cpu", False), ("gpu0", False)}
    assert Job.objects.get().kind == JobKind.MEASURE
    station.say(ReportKind.HELLO, payload=to_plain(replace(host_report(), cores=4)))
    assert set(host.devices.values_list("name", "retired")) == {("cpu", False), ("gpu0", True)}
    assert Job.objects.count() == 1


def test_what_a_host_measured_is_kept(send: Send, station: Station, host: Host) -> None:
    _, order = send("m", kind=JobKind.MEASURE, request={})
    measured = Ceilings(bandwidth=(Bandwidth("copy", 1 << 28, 2, 46.0),))
    station.say(ReportKind.DONE, order, 1, payload=to_plain(replace(host_report(), ceilings=measured)))
    host.refresh_from_db()
    assert host.facts is not None and host.facts.roof("copy", 1 << 20) == 46.0


def test_a_station_nobody_knows_is_asked_what_it_is(station: Station, host: Host) -> None:
    Host.objects.update(seen_at=timezone.now() - timedelta(minutes=2), station="")
    assert not station.alive()
    assert station.introductions == 1


def test_a_station_that_another_has_succeeded_is_not_heard(station: Station, host: Host) -> None:
    before = timezone.now() - timedelta(seconds=5)
    Host.objects.update(seen_at=before)
    station.identity = "machine:0:zz"
    assert not station.alive()
    assert Host.objects.get().seen_at == before


def test_a_host_that_comes_back_gets_work_at_once(station: Station, submit: Submit, device: Device) -> None:
    Host.objects.update(seen_at=timezone.now() - timedelta(minutes=2))
    station.nudged.clear()
    assert station.alive()
    assert station.nudged == [device.pk]
