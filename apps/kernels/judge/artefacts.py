"""What a candidate built in its private directory, carried to the next process of the same judgement.

Taken at the end of the build phase, before any secret input exists, so it can hold no answer. Symlinks are never
followed: the directory belongs to hostile code.
"""

from __future__ import annotations

import io
import itertools
import json
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from apps.kernels.inside.toolchain_names import DIRECTORY, RECORD
from apps.kernels.jail import Jailed
from apps.kernels.plain import Plain

LARGEST = 512 << 20
FILES = 20_000
DEEPEST = 40
LEFT_OUT = {"candidate.py", "problem.py", "__pycache__", "bin"}


@dataclass(frozen=True)
class Compilation:
    """One run of a compiler inside the jail, as its wrapper wrote it down (the candidate could have forged it)."""

    compiler: str
    arguments: tuple[str, ...]
    directory: str
    output: str | None
    seconds: float
    code: int
    cached: bool


@dataclass(frozen=True)
class Artefacts:
    """Files as a tar, and the compilers' runs."""

    tar: bytes = b""
    compilations: tuple[Compilation, ...] = ()


def collect(jailed: Jailed) -> Artefacts:
    """Copy the regular files of a jailed process's directory; more than 512 MB are left behind."""
    buffer = io.BytesIO()
    total = count = 0
    record = b""
    try:
        root = os.open(jailed.work, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:  # it has ended; whoever talks to it next says how
        return Artefacts()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for inside, files, descriptor in _walk(root, "", os.fstat(root).st_dev):
            for name in files:
                if name in LEFT_OUT or total > LARGEST or count > FILES:
                    continue
                entry = _read(descriptor, name)
                if entry is None:
                    continue
                data, info = entry
                if inside == f"{DIRECTORY}/" and name == RECORD:
                    record = data
                    continue
                total, count = total + len(data), count + 1
                member = tarfile.TarInfo(inside + name)
                member.size, member.mtime, member.mode = len(data), info.st_mtime, stat.S_IMODE(info.st_mode) & 0o777
                tar.addfile(member, io.BytesIO(data))
    return Artefacts(buffer.getvalue(), tuple(_compilations(record)))


def _walk(directory: int, inside: str, own: int) -> Iterator[tuple[str, list[str], int]]:
    """Each directory's path, the names of what is no directory in it, and its descriptor; closes what it is given.

    What lies on another file system is bound below the jail's own (an installation) and not the candidate's. Directories
    more than 40 deep are left behind: hostile code can nest them deeper than any walk goes.
    """
    try:
        with os.scandir(directory) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in itertools.islice(entries, FILES)]
        yield inside, sorted(name for name, is_directory in found if not is_directory), directory
        for name in sorted(name for name, is_directory in found if is_directory and name not in LEFT_OUT):
            try:
                below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            except OSError:
                continue
            if os.fstat(below).st_dev != own or inside.count("/") >= DEEPEST:
                os.close(below)
                continue
            yield from _walk(below, f"{inside}{name}/", own)
    finally:
        os.close(directory)


def _read(directory: int, name: str) -> tuple[bytes, os.stat_result] | None:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode) or info.st_size > LARGEST:
            return None
        return file.read(LARGEST), info


def _compilations(record: bytes) -> list[Compilation]:
    found = []
    for line in record.decode("utf-8", "replace").splitlines()[:200]:
        try:
            found.append(_compilation(json.loads(line)))
        except (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError):
            continue  # whatever it has written there instead
    return found


def _compilation(data: Plain) -> Compilation:
    output = data["output"]
    return Compilation(
        compiler=str(data["compiler"]),
        arguments=tuple(str(a) for a in data["arguments"]),
        directory=str(data["directory"]),
        output=None if output is None else str(output),
        seconds=float(data["seconds"]),
        code=int(data["code"]),
        cached=bool(data["cached"]),
    )
