"""Attempts lost with their station: handed out again, counted where they say something, and ended when enough is enough."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from apps.hosts.dispatch import dispatch
from apps.hosts.lost import find_lost
from apps.hosts.models import Device, Fault, Host, Job, JobKind, JobState
from apps.kernels.evaluation import Evaluation, Policy, Tier, Verdict
from apps.kernels.facts import ProblemFacts
from apps.kernels.plain import from_plain, to_plain
from apps.station.messages import Order, ReportKind
from tests.conftest import host_report
from tests.hosts.conftest import Send, Station, evaluation, progress

pytestmark = pytest.mark.django_db(transaction=True)

LONG_UP = timedelta(hours=1)


def silence(seconds: float = 31) -> datetime:
    """Nothing was heard of any job for so long; now."""
    now = timezone.now()
    Job.objects.update(heard_at=now - timedelta(seconds=seconds))
    return now


def lose(station: Station, device: Device, *, in_jail: bool) -> None:
    """Have the present order begun, and its station fall silent; then have it sent anew if it waits again."""
    order = station.orders[-1]
    station.say(ReportKind.PROGRESS, order, 1, payload=progress("check"), in_jail=in_jail)
    now = silence()
    assert len(find_lost(now - LONG_UP, now)) == 1
    dispatch(device.pk)


def test_a_silent_stations_job_goes_back_and_out_again(send: Send, station: Station, device: Device) -> None:
    job, first = send()
    station.say(ReportKind.STARTED, first, 1)
    now = silence(29)
    assert find_lost(now - LONG_UP, now) == []
    now = silence(31)
    assert find_lost(now - LONG_UP, now) == [job]
    job.refresh_from_db()
    assert (job.state, job.attempt, job.losses) == (JobState.WAITING, 1, 1)
    dispatch(device.pk)
    second = station.orders[-1]
    assert (second.job, second.attempt) == (job.pk, 2)
    assert not station.say(ReportKind.DONE, first, 5, payload=evaluation(Verdict.INCORRECT))
    assert station.say(ReportKind.DONE, second, 1, payload=evaluation())
    assert "Lost run 1, attempt 1" in Fault.objects.get().what


def test_silence_while_the_server_was_away_is_not_held_against_it(send: Send, station: Station) -> None:
    job, order = send()
    station.say(ReportKind.STARTED, order, 1)
    now = silence(300)
    assert find_lost(now - timedelta(seconds=20), now) == []
    assert find_lost(now - timedelta(seconds=40), now) == [job]
    job.refresh_from_db()
    assert (job.state, job.losses) == (JobState.WAITING, 0)


def test_two_losses_in_the_candidates_code_mean_that_it_crashes(send: Send, station: Station, device: Device) -> None:
    job, _ = send()
    lose(station, device, in_jail=True)
    job.refresh_from_db()
    assert job.state == JobState.SENT
    lose(station, device, in_jail=True)
    job.refresh_from_db()
    result = from_plain(Evaluation, job.result)
    assert job.state == JobState.DONE
    assert (result.verdict, result.policy, result.tier) == (Verdict.CRASHED, Policy.LIBRARY, Tier.QUICK)


def test_three_losses_elsewhere_fail_the_job_and_say_nothing_of_it(
    send: Send, station: Station, device: Device
) -> None:
    job, _ = send()
    for in_jail in (False, True, False):
        assert Job.objects.get().state == JobState.SENT
        lose(station, device, in_jail=in_jail)
    job.refresh_from_db()
    assert (job.state, job.result) == (JobState.FAILED, None)
    assert "says nothing of the candidate" in job.error


def test_a_problem_that_takes_its_host_down_is_refused(send: Send, station: Station, device: Device) -> None:
    job, _ = send(kind=JobKind.INSPECT, request={"problem": "", "overrides": {}})
    lose(station, device, in_jail=True)
    lose(station, device, in_jail=True)
    job.refresh_from_db()
    assert "2 times" in str(from_plain(ProblemFacts, job.result).refusal)


def hello(station: Station, identity: str) -> None:
    station.identity = identity
    station.say(ReportKind.HELLO, payload=to_plain(host_report()))


def test_a_station_started_anew_gives_its_job_back_at_once(send: Send, station: Station) -> None:
    job, order = send()
    station.say(ReportKind.PROGRESS, order, 1, payload=progress("time"), in_jail=True)
    hello(station, "machine:2:bb")
    job.refresh_from_db()
    assert (job.state, job.losses, job.losses_in_jail) == (JobState.WAITING, 1, 1)


def test_an_order_that_was_never_read_is_not_counted(send: Send, station: Station) -> None:
    job, _ = send()
    hello(station, "machine:2:bb")
    job.refresh_from_db()
    assert (job.state, job.losses) == (JobState.WAITING, 0)


def test_a_station_that_introduces_itself_again_keeps_its_job(send: Send, station: Station) -> None:
    job, order = send()
    station.say(ReportKind.STARTED, order, 1)
    hello(station, station.identity)
    job.refresh_from_db()
    assert job.state == JobState.RUNNING


def test_a_bench_that_dies_is_a_loss_and_a_stopped_station_is_none(
    send: Send, station: Station, device: Device
) -> None:
    job, order = send()
    station.say(ReportKind.BROKE, order, 1, in_jail=True, payload={"error": "killed by signal 9"})
    job.refresh_from_db()
    assert (job.losses, job.losses_in_jail) == (1, 1)
    dispatch(device.pk)
    again: Order = station.orders[-1]
    station.say(ReportKind.BROKE, again, 1, in_jail=True, payload={"error": "stopped", "counts": False})
    job.refresh_from_db()
    assert (job.state, job.losses, job.losses_in_jail) == (JobState.WAITING, 1, 1)


def test_one_who_was_heard_in_the_meantime_is_not_lost(send: Send, station: Station, host: Host) -> None:
    job, order = send()
    now = silence()
    station.say(ReportKind.STARTED, order, 1)
    assert find_lost(now - LONG_UP, now) == []
    job.refresh_from_db()
    assert job.state == JobState.RUNNING
