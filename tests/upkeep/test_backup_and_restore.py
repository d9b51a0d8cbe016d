"""A backup is made while everything runs, and put back whole; nothing is overwritten unless that was said."""

from __future__ import annotations

import io
import json
import sqlite3
import stat
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError
from django.db import connection

from apps.people.models import AuditEntry, Person
from apps.runs.models import Artefact, Event
from pragma_web.upkeep import archive
from tests.upkeep.commands import backup, restore

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("postgres" in str(__import__("os").environ.get("DATABASE_URL", "")), reason="SQLite's own way"),
]


def database_in(file: Path, folder: Path) -> sqlite3.Connection:
    archive.unpack(file, folder)
    return sqlite3.connect(folder / "database.sqlite3")


def test_all_of_an_installation_is_in_one_file_that_only_its_owner_reads(
    var: Path, make_run: Any, tmp_path: Path
) -> None:
    run = make_run()
    Event.objects.create(run=run, seq=1, kind="log", text="a line")
    Artefact.objects.create(digest="d" * 64, size=3, content=b"xyz")
    file = backup()
    assert file.parent == var / "backups"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (tmp_path / "out").mkdir()
    with closing(database_in(file, tmp_path / "out")) as found:
        assert found.execute("SELECT text FROM runs_event").fetchall() == [("a line",)]
        assert found.execute("SELECT content FROM runs_artefact").fetchall() == [(b"xyz",)]
    with tarfile.open(file) as tar:
        assert sorted(tar.getnames()) == ["database.sqlite3", "manifest.json"], "the secret is not in it"
        told = json.load(tar.extractfile("manifest.json"))  # type: ignore[arg-type]
    assert told["holds"]["runs"] == 1
    assert not list(var.glob("backups/*.part")) and not list(var.glob("backups/.backup-*"))
    assert AuditEntry.objects.get(kind="installation.backed_up").through == "command line"


def test_only_the_newest_stay(var: Path, db: None) -> None:
    (var / "backups").mkdir()
    (var / "backups" / "mine.tar.gz").write_text("not a backup of ours")
    made = [backup(keep=2) for _ in range(3)]
    assert sorted(var.glob("backups/*")) == sorted([*made[1:], var / "backups" / "mine.tar.gz"])


def test_another_secret_is_told_of(var: Path, person: Person, settings: Any) -> None:
    file = backup()
    settings.SECRET_KEY = "another" * 8
    assert "another secret" in restore(file, yes=True)


def test_the_secret_travels_only_when_asked_for(var: Path, person: Person, settings: Any) -> None:
    file = backup(with_key=True)
    (var / "secret").write_text("one that was here\n")
    assert "another secret" not in restore(file, yes=True, with_key=True)
    assert (var / "secret").read_text().strip() == settings.SECRET_KEY
    assert stat.S_IMODE((var / "secret").stat().st_mode) == 0o600
    assert (var / "secret.before-restore").read_text() == "one that was here\n"


def rewritten(file: Path, target: Path, change: Any) -> Path:
    """The archive with its members changed by `change(name, content)`; None leaves one out."""
    with tarfile.open(file) as old, tarfile.open(target, "w:gz") as new:
        for info in old:
            content = change(info.name, old.extractfile(info).read())  # type: ignore[union-attr]
            if content is not None:
                info.size = len(content)
                new.addfile(info, io.BytesIO(content))
    return target


def told(**changes: Any) -> Any:
    def change(name: str, content: bytes) -> bytes:
        return json.dumps({**json.loads(content), **changes}).encode() if name == "manifest.json" else content

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda name, content: content[:-1] + b"?" if name.startswith("database") else content, "damaged"),
        (lambda name, content: None if name.startswith("database") else content, "missing"),
        (lambda name, content: None if name == "manifest.json" else content, "does not begin with a manifest"),
        (lambda name, content: b"{" if name == "manifest.json" else content, "can't be read"),
        (told(schema=99), "newer PRAGMA"),
        (told(vendor="postgresql"), "holds no database"),
        (told(migrations=[["runs", "9999_from_the_future"]]), r"runs\.9999_from_the_future"),
    ],
)
def test_a_file_that_is_no_good_backup_changes_nothing(
    var: Path, person: Person, tmp_path: Path, change: Any, says: str
) -> None:
    bad = rewritten(backup(), tmp_path / "bad.tar.gz", change)
    Person.objects.create_user("later")
    with pytest.raises(CommandError, match=says):
        restore(bad, yes=True)
    assert Person.objects.filter(username="later").exists()


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "database.sqlite3/../x", "anything"])
def test_nothing_is_unpacked_under_other_names(var: Path, person: Person, tmp_path: Path, name: str) -> None:
    bad = tmp_path / "bad.tar.gz"
    with tarfile.open(backup()) as old, tarfile.open(bad, "w:gz") as new:
        for info in old:
            new.addfile(info, old.extractfile(info))
        extra = tarfile.TarInfo(name)
        new.addfile(extra, io.BytesIO(b""))
    with pytest.raises(CommandError, match="no backup has"):
        restore(bad, yes=True)


def test_a_file_that_is_no_archive_is_refused(var: Path, person: Person, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    for file in (tmp_path / "text", tmp_path / "nowhere"):
        with pytest.raises(CommandError, match="can't be read as a backup"):
            restore(file, yes=True)


def test_nothing_is_restored_under_a_running_installation(var: Path, person: Person, monkeypatch: Any) -> None:
    file = backup()
    monkeypatch.setattr("pragma_web.upkeep.restore.running", lambda run: "http://127.0.0.1:8000/")
    with pytest.raises(CommandError, match="Stop it first"):
        restore(file, yes=True)


def test_a_backup_is_of_one_moment(var: Path, make_run: Any, tmp_path: Path) -> None:
    """Whoever writes meanwhile is in it wholly or not at all: the snapshot sees no open transaction."""
    run = make_run()
    name = str(connection.settings_dict["NAME"])
    with closing(sqlite3.connect(name, timeout=5)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE runs_run SET notes = 'half done' WHERE id = ?", [run.pk])
        file = backup_elsewhere(tmp_path)
        writer.rollback()
    (tmp_path / "out").mkdir()
    with closing(database_in(file, tmp_path / "out")) as found:
        assert found.execute("SELECT notes FROM runs_run").fetchall() == [("",)]


def backup_elsewhere(folder: Path) -> Path:
    """Without the audit entry, which would wait for the writer."""
    from pragma_web.upkeep.backup import back_up

    return back_up(folder / "there").path
