"""Putting a backup back. What is there now is kept as a backup of its own first."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader

from apps.kernels.temporary import temporary
from apps.people import audit
from pragma_web.supervisor.lock import running
from pragma_web.upkeep import archive
from pragma_web.upkeep.archive import DATABASES, SECRET, BadArchive, Manifest
from pragma_web.upkeep.backup import CannotBackUp, Made, back_up, holds, run_tool

KEPT = "pragma-before-restore-"


class CannotRestore(Exception):
    """Nothing was changed; the message says why and what to do."""


class Overwrites(CannotRestore):
    """There is something here already, and nobody has said that it may go."""


@dataclass(frozen=True)
class Restored:
    """What was put back. `kept` is the backup of what was here before, `other_key`: stored model keys can't be read."""

    manifest: Manifest
    kept: Made | None
    other_key: bool
    secret_written: bool


def restore(source: Path, *, overwrite: bool = False, with_key: bool = False) -> Restored:
    """Put the backup in place of the database, and bring it to this version. Raises `CannotRestore`."""
    if running(settings.RUN) is not None:
        raise CannotRestore("PRAGMA is running here. Stop it first (Ctrl-C where it was started), then restore.")
    try:
        with temporary("restore") as folder:
            manifest = archive.unpack(source, folder)
            _check(manifest)
            there = _there()
            if there and not overwrite:
                told = ", ".join(f"{count} {name}" for name, count in there.items())
                raise Overwrites(f"This installation holds {told}. With --yes they give way; a copy is kept.")
            kept = back_up(settings.VAR / "copies", name=KEPT) if there else None
            _put_back(folder / DATABASES[manifest.vendor], kept)
            secret = with_key and _take_secret(folder / SECRET)
    except (BadArchive, CannotBackUp) as problem:
        raise CannotRestore(str(problem)) from None
    call_command("migrate", verbosity=0, interactive=False)
    audit.record("installation.restored", None, f"backup of {manifest.made_at}", detail=f"version {manifest.version}")
    other = manifest.key != archive.fingerprint(settings.SECRET_KEY) and not secret
    return Restored(manifest, kept, other, secret)


def _check(manifest: Manifest) -> None:
    if manifest.vendor != connection.vendor:
        raise CannotRestore(
            f"It is a backup of {manifest.vendor}, this installation is on {connection.vendor}. Set DATABASE_URL to match."
        )
    known = set(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
    own = {app for app, _ in known}
    newer = sorted(f"{app}.{name}" for app, name in manifest.migrations if app in own and (app, name) not in known)
    if newer:
        raise CannotRestore(f"It comes from a newer PRAGMA (it has {newer[0]}). Update the program first.")


def _there() -> dict[str, int]:
    """What this installation holds; empty where there is no database yet, or nothing in it."""
    try:
        found = holds()
    except DatabaseError:
        connection.close()
        return {}
    return found if any(found[name] for name in ("people", "runs")) else {}


def _put_back(file: Path, kept: Made | None) -> None:
    try:
        if connection.vendor == "sqlite":
            _put_sqlite_back(file)
        else:
            connection.close()
            # Tables that are younger than the backup would stay otherwise, and get in the way of its migrations.
            clean = "DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
            run_tool("psql", "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction", f"--command={clean}")
            run_tool(
                "pg_restore", "--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction", *_into(file)
            )
    except (CannotBackUp, sqlite3.Error) as problem:
        back = f" What was here before: manage.py restore {kept.path}" if kept else ""
        raise CannotRestore(f"It could not be put back: {problem}.{back}") from None


def _into(file: Path) -> tuple[str, str]:
    return f"--dbname={connection.settings_dict['NAME']}", str(file)


def _put_sqlite_back(file: Path) -> None:
    """Page by page within one transaction of the target, so that a crash leaves what was there."""
    connection.close()
    target = Path(str(connection.settings_dict["NAME"]))
    target.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(file)) as old, closing(sqlite3.connect(target, timeout=60)) as new:
        old.backup(new)
    target.chmod(0o600)


def _take_secret(file: Path) -> bool:
    """Write the backup's secret where this installation keeps its own; the one there is kept beside it."""
    if not file.exists():
        raise CannotRestore("The database is put back, but the backup holds no key: it was made without --with-key.")
    place = settings.VAR / "secret"
    if place.exists():
        place.rename(place.with_name("secret.before-restore"))
    with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(file.read_text())
    return True
