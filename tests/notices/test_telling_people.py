"""People are told what concerns them, once, by the ways they chose."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core import mail
from django.test import Client
from django.utils import timezone

from apps.agents.words import Agent
from apps.hosts import silence
from apps.hosts.models import Device, Host
from apps.notices import choosing, delivering
from apps.notices.models import Delivery, Kind, Notice, Way
from apps.notices.telling import tell, unread
from apps.people.models import Person, Role
from apps.runs import events, steering
from apps.runs.events import Entry
from apps.runs.models import RunState
from tests.runs.sockets import browser


def end(run: Any, ending: str, text: str) -> None:
    data = {"ending": ending, "reason": "nothing more is to be gained"}
    events.append(run.pk, [Entry("run_ended", text, Agent.RUN, data=data)])


@pytest.mark.parametrize(("ending", "kind"), [("finished", Kind.RUN_ENDED), ("failed", Kind.RUN_FAILED)])
def test_who_owns_a_run_is_told_how_it_ended(make_run: Any, person: Person, ending: str, kind: Kind) -> None:
    run = make_run(state=RunState.RUNNING)
    end(run, ending, "v4 is 4.52× faster")
    end(run, ending, "v4 is 4.52× faster")  # a second worker says so again
    notice = Notice.objects.get()
    assert (notice.person, notice.kind, notice.link) == (person, kind, f"/runs/{run.pk}/")
    assert notice.title == f"Run {run.pk}, Soft-sign: v4 is 4.52× faster"


def test_nobody_is_told_of_their_own_deed(make_run: Any, person: Person, admin: Person) -> None:
    mine, stopped = make_run(), make_run()
    steering.stop(mine, person)
    assert not Notice.objects.exists()
    steering.stop(stopped, admin)
    assert Notice.objects.get().title.startswith(f"Run {stopped.pk}")


def test_what_happened_elsewhere_before_is_no_news(make_run: Any) -> None:
    run = make_run()
    events.append(run.pk, [Entry("run_ended", "x", Agent.RUN, data={})], at=timezone.now() - timedelta(days=3))
    assert not Notice.objects.exists()


def test_a_silent_host_is_told_of_once_to_those_who_operate_it(device: Device, person: Person, admin: Person) -> None:
    Person.objects.create_user("vera", role=Role.VIEWER)
    Person.objects.create_user("gone", role=Role.ADMIN, is_active=False)
    now = timezone.now()
    Host.objects.update(seen_at=now - timedelta(seconds=70))
    assert not silence.tell_silent(now - timedelta(seconds=40), now), "the server itself was away"
    assert silence.tell_silent(now - timedelta(hours=1), now)
    assert not silence.tell_silent(now - timedelta(hours=1), now + timedelta(seconds=2))
    assert {notice.person.username for notice in Notice.objects.all()} == {"ada", "root"}
    Host.objects.update(seen_at=now + timedelta(minutes=5))
    assert silence.tell_silent(now, now + timedelta(minutes=7)), "another silence is another notice"


def test_a_drained_host_may_be_silent(device: Device, person: Person) -> None:
    Host.objects.update(seen_at=timezone.now() - timedelta(seconds=70), enabled=False)
    assert not silence.tell_silent(timezone.now() - timedelta(hours=1))


def test_each_gets_what_they_chose(person: Person, admin: Person, settings: Any) -> None:
    settings.MAIL_FROM, settings.ADDRESS = "pragma@example.org", "https://pragma.example.org"
    Person.objects.update(email="a@example.org")
    Person.objects.filter(pk=admin.pk).update(email="root@example.org")
    choosing.choose(person, {(Kind.COMMENT, Way.PAGE): False, (Kind.COMMENT, Way.EMAIL): True})
    people = list(Person.objects.all())
    tell(Kind.COMMENT, people, "Noor\r\nBcc: x@y.z comments", text="line 4: why?", link="/reviews/3/")
    assert {one.username: unread([one.pk])[one.pk][0] for one in people} == {"ada": 0, "root": 1}
    assert delivering.deliver_due() == 1
    letter = mail.outbox[0]
    assert (letter.to, letter.subject) == (["a@example.org"], "[PRAGMA] Noor Bcc: x@y.z comments")
    assert "https://pragma.example.org/reviews/3/" in letter.body
    assert delivering.deliver_due() == 0


def test_without_e_mail_nothing_is_tried_for_days(person: Person) -> None:
    Person.objects.update(email="a@example.org")
    tell(Kind.REVIEW_ASKED, [Person.objects.get()], "A review")
    delivering.deliver_due()
    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.error) == ("failed", "No e-mail is set up on this server.")


def test_choices_are_kept_by_the_page_and_over_rest(person: Person, signed_in: Client) -> None:
    assert signed_in.post("/settings/notifications/", {"run_ended.email": "on"}).status_code == 302
    mine = choosing.choices_of([person])[person.pk]
    assert mine[Kind.RUN_ENDED, Way.EMAIL] and not mine[Kind.RUN_ENDED, Way.PAGE]
    sent = {"choices": [{"kind": "run_ended", "way": "page", "wanted": True}]}
    signed_in.post("/api/v1/notice-choices/", sent, content_type="application/json")
    mine = choosing.choices_of([person])[person.pk]
    assert mine[Kind.RUN_ENDED, Way.EMAIL] and mine[Kind.RUN_ENDED, Way.PAGE] and not mine[Kind.COMMENT, Way.PAGE]


def test_opening_a_notice_reads_it_and_leads_to_what_it_is_about(
    person: Person, signed_in: Client, admin: Person
) -> None:
    notice, elsewhere = tell(Kind.DECISION, [person], "Accepted", link="/reviews/3/")[0], Notice.objects.none()
    outward = tell(Kind.DECISION, [person], "Evil", link="//evil.example/x")[0]
    theirs = tell(Kind.DECISION, [admin], "Not yours")[0]
    assert 'data-unread="2"' in signed_in.get("/notices/").content.decode()
    assert signed_in.post(f"/notices/{notice.pk}/open/")["Location"] == "/reviews/3/"
    assert signed_in.post(f"/notices/{outward.pk}/open/")["Location"] == "/notices/"
    assert signed_in.post(f"/notices/{theirs.pk}/open/").status_code == 404
    assert not elsewhere.exists()
    assert 'data-unread="0"' in signed_in.get("/notices/").content.decode()
    assert signed_in.get("/api/v1/notices/?unread=true").json()["count"] == 0


def test_reading_all_leaves_what_came_meanwhile(person: Person, signed_in: Client) -> None:
    first = tell(Kind.DECISION, [person], "One")[0]
    tell(Kind.DECISION, [person], "Two")
    signed_in.post("/notices/read/", {"until": first.pk})
    assert Notice.objects.get(read_at=None).title == "Two"
    assert signed_in.post("/api/v1/notices/read_all/", {}, content_type="application/json").json() == {"marked": 1}


@pytest.mark.django_db(transaction=True)
async def test_the_bell_is_live_and_one_s_own() -> None:
    ada = await sync_to_async(Person.objects.create_user)("ada")
    noor = await sync_to_async(Person.objects.create_user)("noor")
    async with browser("/ws/notices", ada) as page, browser("/ws/notices", noor) as other:
        assert (await page.until("notices"))["unread"] == 0
        assert (await other.until("notices"))["unread"] == 0
        await sync_to_async(tell)(Kind.DECISION, [ada], "Accepted")
        assert (await page.until("notices"))["unread"] == 1
        await sync_to_async(Notice.objects.update)(read_at=timezone.now())
        assert (await page.until("notices"))["unread"] == 0
        await sync_to_async(tell)(Kind.DECISION, [noor], "Declined")
        assert [(await other.until("notices"))["unread"], len(other.messages)] == [1, 2]
