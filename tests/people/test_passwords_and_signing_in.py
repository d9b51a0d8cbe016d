"""Signing in is rate-limited, passwords are changed by who knows them and reset by a letter."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from apps.notices.delivering import deliver_due
from apps.notices.models import Delivery
from apps.people.models import AuditEntry, Person
from tests.conftest import PASSWORD
from tests.people.test_members import choose


def sign_in(name: str, password: str) -> Any:
    return Client().post("/sign-in/", {"username": name, "password": password})


def test_after_ten_wrong_passwords_the_right_one_does_not_help(person: Person) -> None:
    for _ in range(10):
        sign_in("ada", "wrong")
    assert "Too many wrong passwords" in sign_in("ada", PASSWORD).content.decode()
    assert AuditEntry.objects.filter(kind="sign_in.failed", who="ada").count() == 11, "the one behind the lock too"
    assert AuditEntry.objects.filter(kind="sign_in.locked_out", who="ada").exists()


def test_what_is_typed_as_a_name_is_only_kept_where_it_is_one(person: Person) -> None:
    sign_in("my-secret-typed-in-the-wrong-box", "x")
    assert AuditEntry.objects.get(kind="sign_in.failed").who == "unknown name"


def test_hammering_does_not_fill_the_log(db: None) -> None:
    for number in range(30):
        sign_in(f"nobody-{number}", "x")
    assert AuditEntry.objects.filter(kind="sign_in.failed").count() == 20


def test_a_changed_password_ends_the_other_sessions(person: Person, signed_in: Client) -> None:
    elsewhere = Client()
    elsewhere.force_login(person)
    new = "an-even-longer-one"
    answer = signed_in.post(
        "/settings/profile/password/", {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    )
    assert answer.status_code == 302
    assert signed_in.get("/").status_code == 200
    assert elsewhere.get("/").status_code == 302
    assert sign_in("ada", new).status_code == 302


@pytest.mark.parametrize(
    ("old", "new", "says"), [("wrong", "an-even-longer-one", "incorrectly"), (PASSWORD, "short", "too short")]
)
def test_a_password_that_can_not_be_changed_stays(
    person: Person, signed_in: Client, old: str, new: str, says: str
) -> None:
    sent = {"old_password": old, "new_password1": new, "new_password2": new}
    answer = signed_in.post("/settings/profile/password/", sent)
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert sign_in("ada", PASSWORD).status_code == 302


@pytest.fixture
def mailing(settings: Any) -> None:
    """E-mail is set up."""
    settings.MAIL_FROM = "pragma@example.org"


def test_a_forgotten_password_is_chosen_anew_by_a_letter(person: Person, mailing: None) -> None:
    Person.objects.filter(pk=person.pk).update(email="ada@example.org")
    for _ in range(10):
        sign_in("ada", "wrong")
    told = Client().post("/password/forgotten/", {"email": "ADA@example.org"}).content
    assert b"on its way" in told
    assert deliver_due() == 1
    letter = mail.outbox[0]
    assert (letter.to, letter.from_email) == (["ada@example.org"], "pragma@example.org")
    link = re.search(r"http://testserver(/password/\S+)", letter.body)
    assert link
    assert not [row for row in Delivery.objects.values() if link[1].split("/")[3] in str(row)], (
        "the link is kept nowhere"
    )
    assert choose(Client(), link[1], "remembered-at-last") == 302
    assert sign_in("ada", "remembered-at-last").status_code == 302, "the lock-out is over, too"


def test_nobody_learns_who_has_an_address(person: Person, mailing: None) -> None:
    Person.objects.filter(pk=person.pk).update(email="ada@example.org")
    answers = [
        Client().post("/password/forgotten/", {"email": email}).content for email in ("ada@example.org", "x@y.z")
    ]
    tokenless = [re.sub(rb'name="csrfmiddlewaretoken" value="\w+"|X-CSRFToken": "\w+"', b"", one) for one in answers]
    assert tokenless[0] == tokenless[1]
    assert Delivery.objects.count() == 1


def test_letters_are_not_sent_without_end(person: Person, mailing: None) -> None:
    Person.objects.filter(pk=person.pk).update(email="ada@example.org")
    for _ in range(14):
        Client().post("/password/forgotten/", {"email": "ada@example.org"})
    assert Delivery.objects.count() == 10


def test_without_e_mail_the_page_says_who_can_help(db: None) -> None:
    assert "An admin of your team can make a link" in Client().get("/password/forgotten/").content.decode()
    assert not Delivery.objects.exists()


def test_an_invitation_goes_by_e_mail_where_it_can(admins_browser: Client, mailing: None) -> None:
    sent = {"username": "noor", "role": "viewer", "email": "noor@example.org"}
    page = admins_browser.post("/settings/members/", sent, follow=True).content.decode()
    assert "goes to noor@example.org" in page and "made-text" not in page
    deliver_due()
    assert "You are invited to PRAGMA as noor" in mail.outbox[0].body


def test_an_address_of_another_member_is_refused(person: Person, viewer: Person, signed_in: Client) -> None:
    Person.objects.filter(pk=viewer.pk).update(email="v@example.org")
    answer = signed_in.post("/settings/profile/", {"email": "V@example.org", "time_zone": "Mars/Olympus"})
    assert answer.status_code == 422
    assert "belongs to another member" in answer.content.decode()
    assert "no such time zone" in answer.content.decode()
