"""API tokens: shown once, kept as a digest, within scopes, role and time, revoked for good."""

from __future__ import annotations

import logging
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.people import tokens
from apps.people.models import AuditEntry, Person, Token
from apps.people.refusals import Refused


def get(text: str, address: str = "/api/v1/me/", scheme: str = "Bearer") -> Any:
    return Client().get(address, headers={"Authorization": f"{scheme} {text}"})


def post(text: str, address: str, **body: Any) -> Any:
    return Client().post(address, body, content_type="application/json", headers={"Authorization": f"Bearer {text}"})


def test_a_token_s_text_is_shown_once_and_kept_nowhere(person: Person, signed_in: Client) -> None:
    signed_in.post("/settings/tokens/", {"name": "ci", "scopes": ["launch"], "days": "30"})
    page = signed_in.get("/settings/tokens/")
    found = re.search(r'id="made-text">(pragma_[\w-]+)<', page.content.decode())
    assert found
    assert page["Cache-Control"] == "no-store"
    assert found[1] not in signed_in.get("/settings/tokens/").content.decode()
    kept = str(Token.objects.values().get()) + str(list(AuditEntry.objects.values()))
    assert found[1] not in kept and found[1][12:] not in kept
    me = get(found[1]).json()
    assert (me["username"], me["scopes"]) == ("ada", ["launch", "read"])
    assert get(found[1], scheme="Token").status_code == 200


@pytest.mark.parametrize("text", ["", "pragma_wrong", "x" * 5000, "pragma_\u00e9"])
def test_what_is_no_token_is_told_apart(person: Person, text: str) -> None:
    answer = Client().get("/api/v1/me/", HTTP_AUTHORIZATION=f"Bearer {text}")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == 'Bearer realm="PRAGMA"'
    assert "token" in answer.json()["message"]


def test_a_token_ends_with_its_time_and_when_it_is_revoked(person: Person, signed_in: Client) -> None:
    token, text = tokens.make(person, "ci", [], 7)
    assert get(text).status_code == 200
    Token.objects.filter(pk=token.pk).update(expires_at=timezone.now())
    assert "expired" in get(text).json()["message"]
    other, other_text = tokens.make(person, "laptop", [], 7)
    assert signed_in.delete(f"/api/v1/tokens/{other.pk}/").status_code == 204
    assert get(other_text).status_code == 401


def test_nobody_revokes_the_token_of_another(person: Person, viewer: Person, signed_in: Client) -> None:
    token, text = tokens.make(viewer, "theirs", [], 7)
    assert signed_in.post(f"/settings/tokens/{token.pk}/revoke/").status_code == 404
    assert signed_in.delete(f"/api/v1/tokens/{token.pk}/").status_code == 404
    assert get(text).status_code == 200


def test_scopes_bound_what_the_role_allows(person: Person, make_run: Any) -> None:
    run = make_run()
    _, reads = tokens.make(person, "reader", [], 7)
    _, launches = tokens.make(person, "launcher", ["launch"], 7)
    refused = post(reads, f"/api/v1/runs/{run.pk}/stop/")
    assert refused.status_code == 403
    assert "scope launch" in refused.json()["message"]
    assert post(launches, f"/api/v1/runs/{run.pk}/stop/").json()["state"] == "stopped"
    entry = AuditEntry.objects.get(kind="run.stopped")
    assert (entry.who, entry.through, entry.about) == ("ada", "token launcher", f"Run {run.pk}")


def test_a_role_that_was_taken_away_bounds_a_token_too(person: Person, make_run: Any) -> None:
    run = make_run()
    _, text = tokens.make(person, "launcher", ["launch"], 7)
    Person.objects.filter(pk=person.pk).update(role="viewer")
    assert post(text, f"/api/v1/runs/{run.pk}/stop/").status_code == 403


def test_no_token_makes_another(admin: Person) -> None:
    _, text = tokens.make(admin, "all", ["launch", "review", "admin"], 7)
    assert post(text, "/api/v1/tokens/", name="more").status_code == 403
    assert Token.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "scopes", "days", "field"),
    [("", [], 30, "name"), ("x" * 81, [], 30, "name"), ("ci", [], 31, "days"), ("ci", ["launch"], 30, "scopes")],
)
def test_a_token_that_can_not_be_is_refused(
    viewer: Person, name: str, scopes: list[str], days: int, field: str
) -> None:
    with pytest.raises(Refused) as refusal:
        tokens.make(viewer, name, scopes, days)
    assert refusal.value.field == field
    assert not Token.objects.exists()


def test_a_use_is_noted_but_not_each_one(person: Person) -> None:
    token, text = tokens.make(person, "ci", [], 7)
    get(text)
    first = Token.objects.get(pk=token.pk)
    assert first.last_used_from == "127.0.0.1"
    get(text)
    assert Token.objects.get(pk=token.pk).last_used_at == first.last_used_at
    Token.objects.filter(pk=token.pk).update(last_used_at=timezone.now() - timedelta(minutes=2))
    get(text)
    assert Token.objects.get(pk=token.pk).last_used_at != first.last_used_at


def test_tokens_are_in_no_log(person: Person, make_run: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    _, text = tokens.make(person, "ci", [], 7)
    get(text)
    get(text, "/api/v1/nowhere/")
    get(text + "x")
    post(text, f"/api/v1/runs/{make_run().pk}/stop/")
    assert caplog.records, "otherwise this test would look at nothing"
    assert text not in caplog.text
