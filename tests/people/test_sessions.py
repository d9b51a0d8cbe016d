"""A person sees where they are signed in, and ends one session or all others."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from apps.people import sessions
from apps.people.models import AuditEntry, Person, SignedIn
from tests.conftest import PASSWORD

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
EDGE = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0"
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1 (KHTML, like Gecko) Version/18.0 Safari/604"


def browser(name: str, agent: str, address: str) -> Client:
    client = Client(headers={"User-Agent": agent}, REMOTE_ADDR=address)
    answer = client.post("/sign-in/", {"username": name, "password": PASSWORD})
    assert answer.status_code == 302
    return client


@pytest.fixture
def two(person: Person) -> tuple[Client, Client]:
    return browser("ada", FIREFOX, "192.0.2.1"), browser("ada", PHONE, "192.0.2.7")


@pytest.mark.parametrize(
    ("agent", "name"),
    [(FIREFOX, "Firefox on Linux"), (EDGE, "Edge on Windows"), (PHONE, "Safari on iOS"), ("", "another program"),
     ("curl/8", "another program"), ("<script>" * 900, "another program")],
)  # fmt: skip
def test_a_browser_is_called_what_people_call_it(agent: str, name: str) -> None:
    assert sessions.browser_of(agent) == name


def test_where_one_is_signed_in_is_listed_and_this_one_is_marked(two: tuple[Client, Client]) -> None:
    page = two[0].get("/settings/sessions/").content.decode()
    assert page.index("Safari on iOS") < page.index("Firefox on Linux") < page.index("this one")
    assert "192.0.2.1" in page and "192.0.2.7" in page
    told = two[0].get("/api/v1/sessions/").json()["results"]
    assert [(one["browser"], one["here"]) for one in told] == [("Safari on iOS", False), ("Firefox on Linux", True)]
    assert "session_key" not in str(told) and two[1].cookies["sessionid"].value not in str(told) + page


def test_one_is_ended_and_has_to_sign_in_again(two: tuple[Client, Client]) -> None:
    phone = SignedIn.objects.get(browser="Safari on iOS")
    page = two[0].post(f"/settings/sessions/{phone.pk}/end/", follow=True).content.decode()
    assert "Safari on iOS is signed out" in page
    assert two[1].get("/")["Location"].startswith("/sign-in/")
    assert two[0].get("/").status_code == 200
    entry = AuditEntry.objects.get(kind="session.ended")
    assert (entry.who, entry.detail, entry.address) == ("ada", "Safari on iOS, 192.0.2.7", "192.0.2.1")


def test_ending_this_one_leads_to_the_sign_in_page(two: tuple[Client, Client]) -> None:
    mine = SignedIn.objects.get(browser="Firefox on Linux")
    assert two[0].post(f"/settings/sessions/{mine.pk}/end/")["Location"] == "/sign-in/"
    assert two[0].get("/").status_code == 302
    assert two[1].get("/").status_code == 200


@pytest.mark.parametrize("way", ["page", "rest"])
def test_all_others_are_ended(two: tuple[Client, Client], way: str) -> None:
    answer: Any = two[0].post("/settings/sessions/end-others/" if way == "page" else "/api/v1/sessions/end-others/")
    assert answer.status_code == (302 if way == "page" else 200)
    assert two[1].get("/").status_code == 302
    assert two[0].get("/").status_code == 200
    assert SignedIn.objects.get().browser == "Firefox on Linux"


def test_nobody_ends_another_s(two: tuple[Client, Client], person: Person) -> None:
    other = Person.objects.create_user("noor", password=PASSWORD)
    client = Client()
    client.force_login(other)
    for one in SignedIn.objects.filter(person=person):
        assert client.post(f"/settings/sessions/{one.pk}/end/").status_code == 404
        assert client.delete(f"/api/v1/sessions/{one.pk}/").status_code == 404
    assert "192.0.2.7" not in client.get("/settings/sessions/").content.decode()
    assert two[1].get("/").status_code == 200


def test_a_changed_password_ends_all_others_at_once_and_keeps_this_one_listed(two: tuple[Client, Client]) -> None:
    new = "an-even-longer-one"
    fields = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert two[0].post("/settings/profile/password/", fields).status_code == 302
    assert [one.browser for one in SignedIn.objects.all()] == ["Firefox on Linux"]
    assert "this one" in two[0].get("/settings/sessions/").content.decode()
    assert two[1].get("/").status_code == 302


def test_signing_out_and_deactivation_leave_no_session(two: tuple[Client, Client], person: Person) -> None:
    two[0].post("/sign-out/")
    assert SignedIn.objects.get().browser == "Safari on iOS"
    boss = Person.objects.create_user("boss", password=PASSWORD, role="admin")
    client = Client()
    client.force_login(boss)
    client.post(f"/settings/members/{person.pk}/", {"do": "deactivate"})
    assert not SignedIn.objects.filter(person=person).exists()
    assert two[1].get("/").status_code == 302


def test_a_session_of_before_is_listed_once_it_is_used_and_one_that_is_over_is_not(
    two: tuple[Client, Client], person: Person
) -> None:
    SignedIn.objects.all().delete()
    session = two[0].session
    del session["seen"]
    session.save()
    two[0].get("/")
    assert [one.browser for one in sessions.of(person)] == ["Firefox on Linux"]
    Session.objects.update(expire_date="2020-01-01T00:00:00Z")
    assert not sessions.of(person)


def test_being_seen_is_written_down_once_in_a_while(two: tuple[Client, Client]) -> None:
    before = SignedIn.objects.get(browser="Firefox on Linux").seen_at
    two[0].get("/notices/")
    assert SignedIn.objects.get(browser="Firefox on Linux").seen_at == before
    session = two[0].session
    session["seen"] -= sessions.SEEN_EVERY + 1
    session.save()
    two[0].get("/notices/", REMOTE_ADDR="192.0.2.9")
    now = SignedIn.objects.get(browser="Firefox on Linux")
    assert now.seen_at > before
    assert now.address == "192.0.2.9"
