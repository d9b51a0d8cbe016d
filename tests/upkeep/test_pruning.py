"""Old rows go by their retention; what something rests on stays, and so does the audit log."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.core.management import CommandError, call_command
from django.utils import timezone

from apps.hosts.models import Device, Fault, Job
from apps.notices.models import Delivery, Kind, Notice
from apps.people import audit
from apps.people.models import AuditEntry, Person
from apps.reviews import proposing
from apps.runs.models import Run, RunState
from tests.reviews.conftest import Judged, Team, judged, team  # noqa: F401 - fixtures

OLD = timezone.now() - timedelta(days=400)


def prune(*words: str) -> str:
    out = io.StringIO()
    call_command("prune", *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def old_things(person: Person, device: Device) -> None:
    """One old and one new of several sorts."""
    audit.record("host.drained", person)
    for number, at in enumerate((OLD, timezone.now())):
        job = Job.objects.create(
            key=f"{number}", kind="inspect", device=device, state="done", request={}, finished_at=at
        )
        Fault.objects.create(host=device.host, job=job, what="x", at=at)
        notice = Notice.objects.create(person=person, kind=Kind.COMMENT, title="x", key=f"{number}", read_at=at)
        delivery = Delivery.objects.create(person=person, way="email", notice=notice, state="sent")
        Delivery.objects.filter(pk=delivery.pk).update(created_at=at)
        Session.objects.create(session_key=f"{number}", session_data="", expire_date=at + timedelta(days=1))
    Job.objects.create(key="waits", kind="inspect", device=device, request={})
    Notice.objects.create(person=person, kind=Kind.COMMENT, title="unread", key="unread", at=OLD)


def counts() -> list[int]:
    return [model._default_manager.count() for model in (Job, Fault, Notice, Delivery, Session, AuditEntry)]


def test_what_is_old_goes_and_what_is_waited_for_stays(old_things: None) -> None:
    assert counts() == [3, 2, 3, 2, 2, 1]
    said = prune("--dry-run")
    assert "1 jobs of hosts would go" in said
    assert counts() == [3, 2, 3, 2, 2, 1]
    prune()
    assert counts() == [2, 1, 2, 1, 1, 2]
    entry = AuditEntry.objects.get(kind="installation.pruned")
    assert "1 faults of hosts" in entry.detail
    prune()
    assert counts() == [2, 1, 2, 1, 1, 2], "nothing went, so there is nothing to note"


def test_a_sort_can_be_kept_for_good(old_things: None) -> None:
    prune("--jobs=-1", "--faults=-1")
    assert counts()[:2] == [3, 2]
    with pytest.raises(CommandError, match="number of days"):
        prune("--jobs=-2")


def test_runs_go_only_when_asked_for_and_never_under_a_review(
    team: Team,  # noqa: F811
    judged: Judged,  # noqa: F811
    make_run: Any,
) -> None:
    reviewed, live = judged.run, make_run(state=RunState.RUNNING)
    old, young = make_run(state=RunState.FINISHED), make_run(state=RunState.FINISHED, finished_at=timezone.now())
    Run.objects.filter(pk__in=[reviewed.pk, old.pk]).update(finished_at=OLD)
    proposing.propose(team.engineer, judged.faster)
    prune()
    assert Run.objects.count() == 4
    said = prune("--runs=100")
    assert "1 runs gone (1 stay" in said
    assert set(Run.objects.values_list("pk", flat=True)) == {reviewed.pk, live.pk, young.pk}
