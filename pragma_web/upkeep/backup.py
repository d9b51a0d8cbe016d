"""Making a backup while everything runs."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from django.conf import settings
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from apps.kernels.temporary import temporary
from apps.people.models import Person
from apps.runs.models import Problem, Run, Version
from pragma_web.upkeep import archive
from pragma_web.upkeep.archive import DATABASES, SECRET, Manifest

_NAME = "pragma-backup-"


class CannotBackUp(Exception):
    """No backup was made; the message says why and what to do."""


@dataclass(frozen=True)
class Made:
    """A backup that was made, and the older ones that went for it."""

    path: Path
    bytes: int
    manifest: Manifest
    removed: tuple[Path, ...]


def back_up(folder: Path, *, keep: int | None = None, with_key: bool = False, name: str = _NAME) -> Made:
    """A backup in `folder`; of all there only the newest `keep` stay. Raises `CannotBackUp`."""
    made_at = datetime.now(UTC)
    target = folder / f"{name}{made_at:%Y%m%d-%H%M%S-%f}.tar.gz"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with temporary("backup", folder) as place:
            files = {DATABASES[connection.vendor]: snapshot(place)}
            if with_key:
                files[SECRET] = _secret(place)
            manifest = Manifest(
                version=settings.VERSION,
                made_at=made_at.isoformat(timespec="seconds"),
                vendor=connection.vendor,
                migrations=tuple(sorted(MigrationRecorder(connection).applied_migrations())),
                key=archive.fingerprint(settings.SECRET_KEY),
                holds=holds(),
                members={name: archive.member_of(path) for name, path in files.items()},
            )
            archive.write(target, manifest, files)
    except OSError as problem:
        raise CannotBackUp(f"{folder} can't be written: {problem}") from None
    return Made(target, target.stat().st_size, manifest, _thin_out(folder, name, keep))


def snapshot(folder: Path) -> Path:
    """The database as it is at one moment, as a file: by SQLite's online backup or by pg_dump. Raises `CannotBackUp`."""
    target = folder / DATABASES[connection.vendor]
    if connection.vendor == "sqlite":
        _copy_sqlite(target)
    else:
        run_tool("pg_dump", "--format=custom", "--no-owner", "--no-privileges", f"--file={target}")
    return target


def _copy_sqlite(target: Path) -> None:
    source = str(connection.settings_dict["NAME"])
    with closing(sqlite3.connect(source, timeout=60)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
        new.execute("PRAGMA journal_mode=DELETE")
        if (said := new.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
            raise CannotBackUp(f"The database is damaged ({said}), so no backup was made. Restore an earlier one.")
    target.chmod(0o600)


def run_tool(program: str, *words: str) -> None:
    """One of PostgreSQL's tools on this database. Raises `CannotBackUp` with what it said."""
    if shutil.which(program) is None:
        raise CannotBackUp(f"{program} is missing. Install PostgreSQL's client tools of the server's version.")
    database = connection.settings_dict
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "PGSSLMODE") if name in os.environ}
    known = {"PGHOST": "HOST", "PGPORT": "PORT", "PGUSER": "USER", "PGPASSWORD": "PASSWORD", "PGDATABASE": "NAME"}
    environment |= {variable: str(database[key]) for variable, key in known.items() if database.get(key)}
    if mode := database.get("OPTIONS", {}).get("sslmode"):
        environment["PGSSLMODE"] = str(mode)
    done = subprocess.run([program, *words], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBackUp(f"{program} failed: {done.stderr.strip()[-1000:]}")


def holds() -> dict[str, int]:
    """What is in the database, for people."""
    return {
        "people": Person.objects.count(),
        "problems": Problem.objects.count(),
        "runs": Run.objects.count(),
        "versions": Version.objects.count(),
    }


def _secret(folder: Path) -> Path:
    path = folder / SECRET
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(settings.SECRET_KEY + "\n")
    return path


def _thin_out(folder: Path, name: str, keep: int | None) -> tuple[Path, ...]:
    if keep is None:
        return ()
    surplus = sorted(folder.glob(f"{name}*.tar.gz"))[:-keep]
    for path in surplus:
        path.unlink()
    return tuple(surplus)
