"""One's own account over REST: profile, password, theme; in a session, never by a token."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.people import tokens
from apps.people.models import AuditEntry, Person
from tests.conftest import PASSWORD

ME = "/api/v1/me/"


def patch(client: Client, **fields: Any) -> Any:
    return client.patch(ME, fields, content_type="application/json")


def test_what_is_given_is_changed_and_the_rest_stays(person: Person, signed_in: Client) -> None:
    Person.objects.filter(pk=person.pk).update(last_name="Moss", email="ada@here.example")
    told = patch(signed_in, first_name="Adah", time_zone="Europe/Lisbon", theme="dark").json()
    assert (told["name"], told["email"], told["time_zone"]) == ("Adah Moss", "ada@here.example", "Europe/Lisbon")
    person.refresh_from_db()
    assert person.theme == "dark"
    patch(signed_in, email="other@here.example")
    assert AuditEntry.objects.get(kind="member.email_changed").who == "ada"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"time_zone": "Mars/Olympus"}, "no such time zone"),
        ({"theme": "pink"}, "pink"),
        ({"email": "x"}, "valid email"),
    ],
)
def test_what_can_not_be_says_why_and_changes_nothing(
    person: Person, signed_in: Client, fields: dict[str, str], says: str
) -> None:
    answer = patch(signed_in, first_name="Adah", **fields)
    assert answer.status_code == 400
    assert says in answer.json()["message"]
    person.refresh_from_db()
    assert person.first_name != "Adah"


def test_a_password_is_changed_by_who_knows_it_and_other_sessions_end(person: Person, signed_in: Client) -> None:
    elsewhere = Client()
    elsewhere.force_login(person)

    def change(old: str, new: str) -> Any:
        body = {"old_password": old, "new_password": new}
        return signed_in.post(f"{ME}password/", body, content_type="application/json")

    assert change("wrong", "an-even-longer-one").json()["field"] == "old_password"
    assert change(PASSWORD, "short").json()["field"] == "new_password"
    assert change(PASSWORD, "an-even-longer-one").status_code == 204
    assert signed_in.get(ME).status_code == 200
    assert elsewhere.get(ME).status_code == 401


def test_a_token_changes_nothing_of_an_account(person: Person) -> None:
    _, text = tokens.make(person, "all", ["launch"], 7)
    client = Client(headers={"Authorization": f"Bearer {text}"})
    assert client.get(ME).status_code == 200
    assert patch(client, first_name="Eve").status_code == 403
    assert client.post(f"{ME}password/", {}, content_type="application/json").status_code == 403
    assert client.post("/api/v1/saved-views/", {"name": "x"}, content_type="application/json").status_code == 403


def test_saved_lists_are_kept_under_their_name_listed_and_forgotten(person: Person, signed_in: Client) -> None:
    def keep(query: str) -> Any:
        return signed_in.post("/api/v1/saved-views/", {"name": "mine", "query": query}, content_type="application/json")

    first = keep("state=running&page=3").json()
    assert first["query"] == "state=running"
    assert keep("state=failed").json()["id"] == first["id"]
    other = Client()
    other.force_login(Person.objects.create_user("noor", password=PASSWORD))
    assert other.get("/api/v1/saved-views/").json()["count"] == 0
    assert other.delete(f"/api/v1/saved-views/{first['id']}/").status_code == 404
    assert signed_in.delete(f"/api/v1/saved-views/{first['id']}/").status_code == 204
    assert signed_in.get("/api/v1/saved-views/").json()["count"] == 0
