"""Makes the installation ready for its processes: secret, database, static files, an admin, starter problems.

Each is done once, or again when what it depends on has changed; all of it together takes a second or two when there is
nothing to do.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import string
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import django
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor

ADMIN = "admin"
PASSWORD_LETTERS = string.ascii_letters.translate(str.maketrans("", "", "lIO")) + "23456789"
COPIES_KEPT = 5

Say = Callable[[str], None]


class CannotPrepare(Exception):
    """The installation can't be made ready; the message says what to do."""


def prepare(say: Say) -> None:
    """Everything, in order. Raises `CannotPrepare`."""
    settings.VAR.mkdir(parents=True, exist_ok=True)
    write_secret(settings.VAR / "secret")
    django.setup()
    migrate(say)
    collect_static(say)
    if password := create_admin():
        say(f"An admin was created: user name {ADMIN}, password {password} (shown this once; keep it)")
    load_problems(say)


def write_secret(path: Path) -> None:
    """The key that sessions and keys at rest depend on, made once and readable by its owner alone."""
    if path.exists() or os.environ.get("PRAGMA_KEY"):
        return
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_urlsafe(48) + "\n")


def migrate(say: Say) -> None:
    """Bring the database to this version; an older one is copied first."""
    try:
        executor = MigrationExecutor(connection)
    except OperationalError as problem:
        raise CannotPrepare(f"The database can't be opened: {problem}") from None
    loader = executor.loader
    own = {app for app, _ in loader.disk_migrations}
    newer = sorted(
        f"{a}.{n}" for a, n in loader.applied_migrations if a in own and (a, n) not in loader.disk_migrations
    )
    newer = [name for name in newer if not _was_squashed(name, loader.replacements)]
    if newer:
        raise CannotPrepare(
            f"This database comes from a newer PRAGMA (it has {newer[0]}). Update the program, or choose another PRAGMA_VAR."
        )
    plan = executor.migration_plan(loader.graph.leaf_nodes())
    if not plan:
        return
    if loader.applied_migrations:
        say(f"The database is older than this version: {keep_copy()}")
    call_command("migrate", verbosity=0, interactive=False)
    say("The database is ready")


def _was_squashed(name: str, replacements: dict[tuple[str, str], object]) -> bool:
    return any(name in [f"{a}.{n}" for a, n in getattr(r, "replaces", [])] for r in replacements.values())


def keep_copy() -> str:
    """Copy a SQLite database beside itself, whole even while it is written to; what was done, in words."""
    if connection.vendor != "sqlite":
        return "PostgreSQL is migrated in place; your own backups are the copy"
    source = Path(str(connection.settings_dict["NAME"]))
    folder = settings.VAR / "copies"
    folder.mkdir(parents=True, exist_ok=True)
    copy = folder / f"{source.stem}-{time.strftime('%Y%m%d-%H%M%S')}{source.suffix}"
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(copy)) as new:
        old.backup(new)
    for surplus in sorted(folder.glob(f"{source.stem}-*{source.suffix}"))[:-COPIES_KEPT]:
        surplus.unlink()
    return f"a copy is kept as {copy}"


def collect_static(say: Say) -> None:
    """Gather what pages are made of, if any of it has changed."""
    folders = [Path(entry[1] if isinstance(entry, tuple) else entry) for entry in settings.STATICFILES_DIRS]
    digest = _state_of(folders, settings.VERSION)
    stamp = settings.VAR / "static.stamp"
    if stamp.exists() and stamp.read_text() == digest and settings.STATIC_ROOT.is_dir():
        return
    call_command("collectstatic", verbosity=0, interactive=False)
    stamp.write_text(digest)
    say("Static files are in place")


def create_admin() -> str | None:
    """An admin on an installation that has none; the password, or None where there is one already."""
    from apps.people.models import Person, Role

    if Person.objects.filter(role=Role.ADMIN, is_active=True).exists():
        return None
    password = "".join(secrets.choice(PASSWORD_LETTERS) for _ in range(16))
    name = ADMIN if not Person.objects.filter(username=ADMIN).exists() else f"{ADMIN}-{secrets.token_hex(2)}"
    Person.objects.create_superuser(name, password=password, role=Role.ADMIN)
    return password


def load_problems(say: Say) -> None:
    """The problems that PRAGMA comes with, if they have changed since they were loaded last."""
    digest = _state_of([settings.BASE / "problems"], settings.VERSION)
    stamp = settings.VAR / "problems.stamp"
    if stamp.exists() and stamp.read_text() == digest:
        return
    try:
        call_command("load_problems", verbosity=0)
    except CommandError as problem:
        raise CannotPrepare(str(problem)) from None
    stamp.write_text(digest)


def _state_of(folders: list[Path], version: str) -> str:
    """A digest of which files there are, how large and how old."""
    files = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    facts = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    database = str(connection.settings_dict["NAME"])
    return hashlib.sha256(json.dumps([version, database, facts]).encode()).hexdigest()
