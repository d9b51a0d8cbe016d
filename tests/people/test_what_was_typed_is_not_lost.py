"""The server says what it took, so that a page can keep what it did not; and a way back after signing in anew."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.people.models import Person

KEY = "0123456789abcdef"


@pytest.fixture
def browser(person: Person) -> Client:
    made = Client()
    made.force_login(person)
    return made


def test_what_was_taken_is_said(browser: Client) -> None:
    answer = browser.post("/settings/profile/", {"first_name": "Ada", "timezone": "UTC", "kept": KEY})
    assert answer.status_code in (302, 422)
    assert (f"taken-{KEY}" in answer.cookies) == (answer.status_code == 302)


def test_a_refusal_that_goes_back_is_no_taking(browser: Client) -> None:
    answer = browser.post("/settings/notifications/webhooks/", {"url": "ftp://x", "kept": KEY})
    assert answer.status_code == 302
    assert not answer.cookies.get(f"taken-{KEY}")


@pytest.mark.parametrize("key", ["", "0123", KEY.upper(), KEY + ";x=1", "../../../../etc/xx"])
def test_only_a_number_of_that_form_becomes_a_cookie(browser: Client, key: str) -> None:
    answer = browser.post("/theme/", {"theme": "dark", "kept": key})
    assert answer.status_code == 204
    assert not [name for name in answer.cookies if name.startswith("taken")]


def test_a_form_sent_after_the_session_ended_leads_back_to_its_page(db: None) -> None:
    client = Client(headers={"Referer": "http://testserver/reviews/3/?view=unified"})
    answer = client.post("/reviews/3/do/", {"text": "hm", "kept": KEY})
    assert answer["Location"] == "/sign-in/?next=/reviews/3/%3Fview%3Dunified"
    assert f"taken-{KEY}" not in answer.cookies


def test_another_server_s_page_is_no_way_back(db: None) -> None:
    client = Client(headers={"Referer": "http://elsewhere.example/trap/"})
    assert client.post("/reviews/3/do/", {})["Location"] == "/sign-in/?next=/"


def test_a_part_that_asks_by_itself_has_the_page_read_again(db: None) -> None:
    answer = Client(headers={"HX-Request": "true"}).get("/reviews/3/pulse/")
    assert (answer.status_code, answer["HX-Refresh"]) == (401, "true")
