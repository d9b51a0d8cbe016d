"""What a candidate built in its private directory, carried to the next process of the same judgement.

Taken at the end of the build phase, before any secret input exists, so it can hold no answer. Symlinks are never
followed: the directory belongs to hostile code.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tarfile
from dataclasses import dataclass

from apps.kernels.inside.toolchain_names import DIRECTORY, RECORD
from apps.kernels.jail import Jailed
from apps.kernels.plain import Plain

LARGEST = 512 << 20
FILES = 20_000
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
    own = os.lstat(jailed.work).st_dev
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for directory, names, files, descriptor in os.fwalk(jailed.work, follow_symlinks=False):
            names[:] = [name for name in names if name not in LEFT_OUT and _device(descriptor, name) == own]
            inside = os.path.relpath(directory, jailed.work)
            for name in files:
                if name in LEFT_OUT or total > LARGEST or count > FILES:
                    continue
                entry = _read(descriptor, name)
                if entry is None:
                    continue
                data, info = entry
                if inside == DIRECTORY and name == RECORD:
                    record = data
                    continue
                total, count = total + len(data), count + 1
                member = tarfile.TarInfo(os.path.normpath(os.path.join(inside, name)))  # noqa: PTH118
                member.size, member.mtime, member.mode = len(data), info.st_mtime, stat.S_IMODE(info.st_mode) & 0o777
                tar.addfile(member, io.BytesIO(data))
    return Artefacts(buffer.getvalue(), tuple(_compilations(record)))


def _device(directory: int, name: str) -> int | None:
    """The file system a directory lies on: what is bound below the jail's own (an installation) is not the candidate's."""
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_dev
    except OSError:
        return None


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
        except (ValueError, TypeError, KeyError):
            continue
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
