"""A backup's file: a tar with a manifest that says what is in it and of which version, and the digest of each member.

Everything a run is lives in the database (sources, evaluations, events, artefacts), so that one snapshot of it is
consistent by itself. `var/secret`, on which stored model keys depend, is in it only where that was asked for.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

SCHEMA = 1
MANIFEST, SECRET = "manifest.json", "secret"
DATABASES = {"sqlite": "database.sqlite3", "postgresql": "database.pgdump"}
_MEMBERS = frozenset({SECRET, *DATABASES.values()})
_LARGEST_MANIFEST = 4 * 1024 * 1024


class BadArchive(Exception):
    """A file that is no backup, or not a whole one; the message says what is wrong."""


@dataclass(frozen=True)
class Member:
    """One file of the archive."""

    sha256: str
    bytes: int


@dataclass(frozen=True)
class Manifest:
    """What an archive says of itself. `key` is a fingerprint of the installation's secret, `holds` counts rows for people."""

    version: str
    made_at: str
    vendor: str
    migrations: tuple[tuple[str, str], ...]
    key: str
    holds: Mapping[str, int]
    members: Mapping[str, Member]
    schema: int = SCHEMA


def fingerprint(secret: str) -> str:
    """Tells one secret from another and nothing else."""
    return hashlib.sha256(b"pragma.backup:" + secret.encode()).hexdigest()[:16]


def member_of(path: Path) -> Member:
    """Digest and size of a file."""
    with path.open("rb") as file:
        return Member(hashlib.file_digest(file, "sha256").hexdigest(), path.stat().st_size)


def write(target: Path, manifest: Manifest, files: Mapping[str, Path]) -> None:
    """Write the archive, readable by its owner alone. It is there whole under its name, or not at all."""
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as out:
            with tarfile.open(fileobj=out, mode="w:gz", compresslevel=6) as tar:
                _add(tar, MANIFEST, json.dumps(asdict(manifest), indent=1).encode())
                for name, path in files.items():
                    tar.add(path, name, recursive=False)
            out.flush()
            os.fsync(out.fileno())
        part.rename(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), 0o600
    tar.addfile(info, io.BytesIO(content))


def unpack(source: Path, folder: Path) -> Manifest:
    """Unpack an archive into `folder`, after comparing every member with the manifest. Raises `BadArchive`.

    Only members whose names are known are written, and only as plain files: an archive is a file from outside.
    """
    try:
        with tarfile.open(source, "r:*") as tar:
            manifest = _manifest(tar.next(), tar)
            for info in tar:
                if info.name == MANIFEST:
                    continue
                if info.name not in _MEMBERS or info.name not in manifest.members or not info.isreg():
                    raise BadArchive(f"It holds {info.name!r}, which no backup has.")
                content = tar.extractfile(info)
                assert content is not None
                _copy(content, folder / info.name)
    except (tarfile.TarError, EOFError, OSError) as problem:
        raise BadArchive(f"{source} can't be read as a backup: {problem}") from None
    for name, expected in manifest.members.items():
        if not (folder / name).exists():
            raise BadArchive(f"{name} is missing from it.")
        if member_of(folder / name) != expected:
            raise BadArchive(f"{name} in it is damaged: its digest is not the one of the manifest.")
    if DATABASES.get(manifest.vendor) not in manifest.members:
        raise BadArchive("It holds no database.")
    return manifest


def _copy(content: IO[bytes], target: Path) -> None:
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        shutil.copyfileobj(content, out)


def _manifest(info: tarfile.TarInfo | None, tar: tarfile.TarFile) -> Manifest:
    if info is None or info.name != MANIFEST or not info.isreg() or info.size > _LARGEST_MANIFEST:
        raise BadArchive("It does not begin with a manifest, so it is no backup of PRAGMA.")
    content = tar.extractfile(info)
    assert content is not None
    try:
        told = json.loads(content.read())
        if told["schema"] != SCHEMA:
            raise BadArchive(f"It was made by a newer PRAGMA ({told.get('version')}). Update the program first.")
        members = {str(name): Member(**facts) for name, facts in told["members"].items()}
        migrations = tuple((str(app), str(name)) for app, name in told["migrations"])
        return Manifest(**{**told, "members": members, "migrations": migrations})
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise BadArchive(f"Its manifest can't be read: {problem}") from None
