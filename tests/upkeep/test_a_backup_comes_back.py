"""What was lost comes back, on whatever database (tests/runs/test_on_postgres.py runs this on PostgreSQL too)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError

from apps.people.models import AuditEntry, Person
from apps.runs.models import Artefact, Run
from tests.upkeep.commands import backup, restore

pytestmark = pytest.mark.django_db(transaction=True)


def test_what_was_lost_comes_back_and_what_was_there_is_kept(var: Path, make_run: Any, person: Person) -> None:
    before = make_run()
    Artefact.objects.create(digest="d" * 64, size=3, content=b"xyz")
    file = backup()
    Run.objects.all().delete()
    Artefact.objects.all().delete()
    later = Person.objects.create_user("later")
    with pytest.raises(CommandError, match=r"2 people.*With --yes"):
        restore(file)
    assert not Run.objects.exists() and Person.objects.filter(pk=later.pk).exists()
    said = restore(file, yes=True)
    assert Run.objects.get().pk == before.pk
    assert bytes(Artefact.objects.get().content) == b"xyz"
    assert not Person.objects.filter(username="later").exists()
    assert AuditEntry.objects.filter(kind="installation.restored").exists()
    kept = Path(said.partition("What was here before: ")[2].splitlines()[0])
    restore(kept, yes=True)
    assert Person.objects.filter(username="later").exists() and not Run.objects.exists()
