"""What this machine lacks, and the package that brings it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from dataclasses import dataclass


@dataclass(frozen=True)
class Lack:
    """Something that is missing, in words; `fatal` if nothing can be done without it."""

    words: str
    fatal: bool


def missing() -> list[Lack]:
    """Everything that is missing here."""
    return [lack for lack in (_compiler(), _make(), _venv(), _system()) if lack is not None]


def _compiler() -> Lack | None:
    wanted = [os.environ.get("CXX", ""), "g++", "clang++", "c++"]
    if any(name and shutil.which(name) for name in wanted):
        return None
    brings = "Debian, Ubuntu: apt install g++ · Fedora: dnf install gcc-c++ · macOS: xcode-select --install"
    return Lack(f"Missing: a C++ compiler, which builds the kernels. {brings}", fatal=_supported())


def _make() -> Lack | None:
    if shutil.which("make"):
        return None
    return Lack("Missing: make. Debian, Ubuntu: apt install make · Fedora: dnf install make", fatal=False)


def _venv() -> Lack | None:
    if importlib.util.find_spec("ensurepip") and importlib.util.find_spec("venv"):
        return None
    version = ".".join(platform.python_version_tuple()[:2])
    brings = f"Debian, Ubuntu: apt install python{version}-venv · Fedora: dnf install python3-pip"
    return Lack(f"Missing: Python's venv, which keeps PRAGMA's packages apart from the system's. {brings}", fatal=True)


def _system() -> Lack | None:
    if _supported():
        return None
    here = f"{platform.system()} {platform.machine()}"
    words = f"PRAGMA judges kernels on Linux x86-64; this is {here}. All pages work, but this machine can't judge:"
    return Lack(f"{words} join a Linux host with python -m apps.station (docs/deployment.md).", fatal=False)


def _supported() -> bool:
    return platform.system() == "Linux" and platform.machine() in ("x86_64", "AMD64")
