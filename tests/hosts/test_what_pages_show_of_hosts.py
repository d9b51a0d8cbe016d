"""What a host and its devices are doing, as pages show it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.hosts import jobs, queries, registry
from apps.hosts.models import Device, Host, Job, JobState
from apps.kernels.machine import Isolation, IsolationLevel
from apps.kernels.plain import to_plain
from apps.people.models import AuditEntry, Person
from apps.station.messages import ReportKind
from tests.conftest import host_report
from tests.hosts.conftest import Send, Station, Submit

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_device_shows_its_job_and_how_many_wait(send: Send, submit: Submit, station: Station) -> None:
    job, order = send("a")
    submit("b")
    urgent = submit("c", priority=4)
    station.say(ReportKind.STARTED, order, 1)
    view = queries.host_view("here")
    (device,) = view.devices
    assert (device.job, device.waiting, view.waiting) == (job, 2, 2)
    assert device.seconds is not None and device.seconds >= 0
    assert [waiting.key for waiting in queries.jobs_waiting(device.device)] == [urgent.key, "b"]


def test_a_job_that_waits_says_what_for(send: Send, submit: Submit, station: Station, host: Host) -> None:
    def why(job: Job) -> str:
        return queries.why_waiting(Job.objects.select_related("device__host").get(pk=job.pk))

    alone = submit("alone")
    assert why(alone) == "waiting for here/cpu"
    jobs.cancel(alone)
    send("a", origin="problem soft-sign")
    mine = submit("mine")
    assert why(mine) == "waiting for here/cpu, which is at problem soft-sign"
    submit("later"), submit("sooner", priority=1)
    assert why(mine) == "waiting for here/cpu, which is at problem soft-sign; 1 job goes first"
    submit("soonest", priority=2)
    assert why(mine).endswith("; 2 jobs go first")
    registry.drain(host)
    assert why(mine) == "here is drained and takes nothing new; waiting until it is enabled"
    Host.objects.update(seen_at=timezone.now() - timedelta(minutes=1))
    assert why(mine).startswith("here is away")


def test_the_state_of_a_host_is_said_in_one_word(send: Send, station: Station, host: Host) -> None:
    assert queries.host_view("here").state == "online"
    send()
    registry.drain(host)
    assert queries.host_view("here").state == "draining"
    Job.objects.update(state=JobState.DONE)
    assert queries.host_view("here").state == "drained"
    Host.objects.update(seen_at=timezone.now() - timedelta(minutes=1))
    assert queries.host_view("here").state == "offline"


def test_a_host_that_isolates_weakly_needs_permission(station: Station, host: Host, admin: Person) -> None:
    Host.objects.update(report=to_plain(host_report()) | {"isolation_level": "weak"})
    assert queries.host_view("here").needs_permission
    registry.allow_weak_isolation(host, admin)
    assert not queries.host_view("here").needs_permission


def test_a_report_of_another_version_hides_no_host(station: Station, device: Device) -> None:
    Host.objects.update(report={"schema": 99})
    view = queries.host_view("here")
    assert (view.report, view.state) == (None, "online")


def test_many_hosts_cost_few_queries(station: Station, django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    for number in range(5):
        host = Host.objects.create(name=f"h{number}", seen_at=timezone.now())
        Device.objects.create(host=host, name="cpu", kind="cpu")
    with django_assert_max_num_queries(10):
        assert len(queries.host_views()) == 6


def test_a_host_refuses_below_what_it_requires_itself(host: Host, admin: Person) -> None:
    Host.objects.update(report=to_plain(host_report()) | {"isolation_level": "partial", "isolation_required": "full"})
    host.refresh_from_db()
    assert host.refuses_candidates
    registry.allow_weak_isolation(host, admin)
    host.refresh_from_db()
    assert not host.refuses_candidates
    registry.forbid_weak_isolation(host, admin)
    assert list(AuditEntry.objects.order_by("pk").values_list("kind", "who", "about")) == [
        ("host.weak_isolation_allowed", "root", "host here"),
        ("host.weak_isolation_forbidden", "root", "host here"),
    ]


def test_its_page_says_what_is_missing_and_goes_on_saying_it(client: Client, host: Host, admin: Person) -> None:
    missing = Isolation("namespaces", False, "unshare: Operation not permitted")
    report = replace(host_report(), isolation=(missing,), isolation_level="weak")
    Host.objects.update(report=to_plain(report))
    client.force_login(admin)
    page = client.get("/hosts/here/").content.decode()
    assert "Candidates are refused" in page and "namespaces (unshare: Operation not permitted)" in page
    assert IsolationLevel.WEAK.guarantee.replace("'", "&#x27;") in page and "Allow weak isolation" in page
    client.post("/hosts/here/operate/", {"do": "allow-weak"})
    page = client.get("/hosts/here/").content.decode()
    assert "root has allowed candidates here nevertheless" in page and "Forbid weak isolation" in page
    assert "allowed" in client.get("/hosts/").content.decode()


def test_its_page_says_which_system_it_runs(client: Client, host: Host, admin: Person) -> None:
    client.force_login(admin)
    assert ">system</th>" not in client.get("/hosts/here/").content.decode()  # a report that does not say it
    known = {"system": "Linux", "kernel": "6.1.0-18-amd64", "architecture": "x86_64"}
    Host.objects.update(report=to_plain(replace(host_report(), environment=known)))
    page = client.get("/hosts/here/").content.decode()
    assert ">system</th><td>Linux, kernel 6.1.0-18-amd64, x86_64</td>" in page
    Host.objects.update(report=to_plain(replace(host_report(), environment={"kernel": "6.1.0"})))
    assert ">system</th><td>kernel 6.1.0</td>" in client.get("/hosts/here/").content.decode()
