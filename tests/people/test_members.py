"""The team: invited by a link shown once, given roles, deactivated; one admin always stays."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from django.test import Client

from apps.people import members, tokens
from apps.people.models import AuditEntry, Person, Role
from apps.people.refusals import Refused

BrowserOf = Callable[[Person], Client]


def link_in(page: bytes) -> str:
    """The link that a page shows once."""
    found = re.search(r'id="made-text">http://testserver([^<]+)<', page.decode())
    assert found, page.decode()
    return found[1]


def choose(client: Client, link: str, password: str) -> int:
    """Follow a link and choose a password; the status of the last answer."""
    form = client.get(link, follow=True)
    address = form.request["PATH_INFO"]
    return client.post(address, {"new_password1": password, "new_password2": password}).status_code


def test_an_invitation_s_link_is_shown_once_and_works_once(admins_browser: Client) -> None:
    sent = admins_browser.post("/settings/members/", {"username": "noor", "role": "reviewer", "full_name": "Noor Hale"})
    assert sent.status_code == 302
    link = link_in(admins_browser.get("/settings/members/").content)
    assert link not in admins_browser.get("/settings/members/").content.decode()
    guest = Client()
    assert choose(guest, link, "correct-horse-battery") == 302
    assert guest.post("/sign-in/", {"username": "noor", "password": "correct-horse-battery"}).status_code == 302
    noor = Person.objects.get(username="noor")
    assert (noor.role, noor.get_full_name()) == (Role.REVIEWER, "Noor Hale")
    assert "has been used" in Client().get(link, follow=True).content.decode()


def test_a_weak_password_is_not_taken(admins_browser: Client) -> None:
    admins_browser.post("/settings/members/", {"username": "noor", "role": "viewer"})
    link = link_in(admins_browser.get("/settings/members/").content)
    assert choose(Client(), link, "short") == 200
    assert Person.objects.get(username="noor").is_invited


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ({"username": "two words", "role": "viewer"}, "letters, digits"),
        ({"username": "ADA", "role": "viewer"}, "already"),
        ({"username": "new", "role": "owner"}, "valid choice"),
        ({"username": "new", "role": "viewer", "email": "nowhere"}, "valid email"),
    ],
)
def test_an_invitation_that_can_not_be_says_why(
    admins_browser: Client, person: Person, sent: dict[str, str], says: str
) -> None:
    before = Person.objects.count()
    answer = admins_browser.post("/settings/members/", sent)
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert Person.objects.count() == before


def test_the_only_admin_stays_one(admin: Person, person: Person, admins_browser: Client) -> None:
    for sent in ({"do": "role", "role": "viewer"}, {"do": "deactivate"}):
        said = admins_browser.post(f"/settings/members/{admin.pk}/", sent, follow=True).content.decode()
        assert "only admin" in said
    admin.refresh_from_db()
    assert admin.is_active and admin.role == Role.ADMIN
    members.invite(admin, "guest", "admin")  # has not chosen a password, so can't stand in
    with pytest.raises(Refused, match="only admin"):
        members.deactivate(admin, admin)
    members.set_role(admin, person, "admin")
    members.set_role(person, admin, "engineer")
    assert Person.objects.get(pk=admin.pk).role == Role.ENGINEER


def test_a_role_counts_from_the_next_request_on(admin: Person, person: Person, browser_of: BrowserOf) -> None:
    page = browser_of(person)
    assert page.get("/launch/").status_code == 200
    members.set_role(admin, person, "viewer")
    assert page.get("/launch/").status_code == 403
    assert page.get("/").status_code == 200


def test_who_is_deactivated_is_out_at_once_tokens_too(admin: Person, person: Person, browser_of: BrowserOf) -> None:
    page, (token, text) = browser_of(person), tokens.make(person, "ci", [], 30)
    members.deactivate(admin, person)
    assert page.get("/").status_code == 302
    assert Client().get("/api/v1/me/", headers={"Authorization": f"Bearer {text}"}).status_code == 401
    members.reactivate(admin, person)
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert browser_of(person).get("/").status_code == 200


def test_an_admin_s_link_lets_a_member_choose_anew_and_in_again(
    admins_browser: Client, person: Person, browser_of: BrowserOf
) -> None:
    elsewhere = browser_of(person)
    admins_browser.post(f"/settings/members/{person.pk}/", {"do": "link"})
    assert choose(Client(), link_in(admins_browser.get("/settings/members/").content), "another-long-one") == 302
    assert elsewhere.get("/").status_code == 302, "sessions under the old password have ended"
    assert AuditEntry.objects.filter(kind="password.link_made", about="ada", who="root").exists()


def test_members_over_rest(admin: Person, admins_browser: Client) -> None:
    made = admins_browser.post("/api/v1/members/", {"username": "noor"}, content_type="application/json")
    assert made.status_code == 201
    assert made.json()["invited"] and made.json()["link"].startswith("http://testserver/password/")
    changed = admins_browser.patch("/api/v1/members/noor/", {"role": "viewer"}, content_type="application/json")
    assert changed.json()["role"] == "viewer"
    alone = admins_browser.patch("/api/v1/members/root/", {"active": False}, content_type="application/json")
    assert alone.status_code == 409
    assert "only admin" in alone.json()["message"]
    assert {one["username"] for one in admins_browser.get("/api/v1/members/").json()["results"]} == {"noor", "root"}


def test_a_superuser_made_at_the_terminal_is_an_admin(db: None) -> None:
    assert Person.objects.create_superuser("late", password="x").role == Role.ADMIN
