"""What is written once is held by the database too, in databases of before as in new ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.apps import apps
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

from apps.people.append_only import AppendOnly, NeverAltered
from apps.people.models import AuditEntry

pytestmark = pytest.mark.django_db

KINDS = [kind for kind in apps.get_models() if issubclass(kind, AppendOnly)]
BEFORE = [("people", "0002_roles_tokens_audit"), ("reviews", "0003_versions_timed_against_accepted_ones")]


def guarded() -> dict[str, set[str]]:
    """By table, what its triggers refuse."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT tbl_name, sql FROM sqlite_master WHERE type = 'trigger'")
            rows = [(table, sql.upper().partition("BEFORE")[2].split()[0]) for table, sql in cursor.fetchall()]
        else:
            cursor.execute("SELECT event_object_table, event_manipulation FROM information_schema.triggers")
            rows = cursor.fetchall()
    return {table: {verb for other, verb in rows if other == table} for table, _ in rows}


def test_the_database_keeps_every_kind() -> None:
    assert len(KINDS) >= 5
    found = guarded()
    for kind in KINDS:
        belongs = any(field.remote_field and field.remote_field.on_delete.__name__ == "CASCADE"
                      for field in kind._meta.concrete_fields)  # fmt: skip
        assert found.get(kind._meta.db_table) == ({"UPDATE"} if belongs else {"UPDATE", "DELETE"}), kind


def test_a_new_row_is_not_written_over_an_old_one() -> None:
    first = AuditEntry.objects.create(who="ada", kind="host.drained")
    with pytest.raises(DatabaseError), transaction.atomic():
        AuditEntry(pk=first.pk, who="mallory", kind="host.drained").save()
    assert AuditEntry.objects.get().who == "ada"


def test_the_refusal_says_what_is_kept() -> None:
    with pytest.raises(NeverAltered, match="audit entry: kept as it was written, never deleted"):
        AuditEntry.objects.all().delete()


@pytest.fixture
def of_before(transactional_db: None) -> Iterator[None]:
    """A database as it was when the audit log and the reviews had triggers of their own."""
    now = MigrationExecutor(connection).loader.graph.leaf_nodes()
    MigrationExecutor(connection).migrate(BEFORE)
    yield
    MigrationExecutor(connection).migrate(now)


def test_a_database_of_before_is_kept_all_along(of_before: None) -> None:
    both = {"UPDATE", "DELETE"}
    old = ("people_auditentry", "reviews_revision", "reviews_decision", "reviews_check")
    assert {table: guarded().get(table) for table in old} == dict.fromkeys(old, both)
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())
    test_the_database_keeps_every_kind()
