"""The audit log: written where it happens, read by admins, changed by nobody, not even with SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client

from apps.hosts import registry
from apps.hosts.models import Device
from apps.people import audit
from apps.people.append_only import NeverAltered
from apps.people.models import AuditEntry, Person

BrowserOf = Callable[[Person], Client]


@pytest.fixture
def entry(person: Person) -> AuditEntry:
    """One entry."""
    with audit.coming_from("192.0.2.4", "page"):
        return audit.record("host.drained", person, "host here")


def test_no_code_changes_an_entry(entry: AuditEntry) -> None:
    entry.who = "somebody else"
    for attempt in (
        entry.save,
        entry.delete,
        AuditEntry.objects.all().delete,
        lambda: AuditEntry.objects.update(who="x"),
        lambda: AuditEntry.objects.filter(pk=entry.pk).bulk_update([entry], ["who"]),
    ):
        with pytest.raises(NeverAltered):
            attempt()
    assert AuditEntry.objects.get().who == "ada"


def test_the_database_itself_refuses(entry: AuditEntry) -> None:
    for statement in ("UPDATE people_auditentry SET who = 'x'", "DELETE FROM people_auditentry"):
        with (
            pytest.raises(DatabaseError, match="kept as it was written"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
    assert AuditEntry.objects.get().who == "ada"


def test_someone_with_entries_is_not_deleted(entry: AuditEntry, person: Person) -> None:
    from django.db.models import ProtectedError

    with pytest.raises(ProtectedError):
        person.delete()


def test_it_says_who_what_and_from_where(person: Person, signed_in: Client, device: Device, admin: Person) -> None:
    signed_in.post("/hosts/here/operate/", {"do": "drain"})
    signed_in.post("/hosts/here/operate/", {"do": "drain"})
    registry.enable(device.host)
    told = [
        (one.kind, one.who, one.about, one.address, one.through)
        for one in AuditEntry.objects.filter(kind__startswith="host.").order_by("pk")
    ]
    assert told == [
        ("host.drained", "ada", "host here", "127.0.0.1", "page"),
        ("host.enabled", "server", "host here", "", "server"),
    ]


def test_admins_read_and_filter_it(entry: AuditEntry, admins_browser: Client, signed_in: Client) -> None:
    assert signed_in.get("/settings/audit/").status_code == 403
    for query, there in (
        ("", True),
        ("kind=host", True),
        ("kind=host.drained&who=ada", True),
        ("text=192.0.2", True),
        ("who=root", False),
        ("last=2001-01-01", False),
        ("first=2001-01-01&last=yesterday", True),
        ("text=%25", False),
    ):
        page = admins_browser.get(f"/settings/audit/?{query}").content.decode()
        assert ("host here" in page) is there, query
        found = admins_browser.get(f"/api/v1/audit/?{query}").json()["results"]
        assert bool([one for one in found if one["about"] == "host here"]) is there, query


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_rest_offers_no_way_to_change_it(entry: AuditEntry, admins_browser: Client, method: str) -> None:
    for address in ("/api/v1/audit/", f"/api/v1/audit/{entry.pk}/"):
        call: Any = getattr(admins_browser, method)
        assert call(address, {}, content_type="application/json").status_code in (404, 405)
